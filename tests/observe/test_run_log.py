"""What the log says about runs, and how it keeps quiet when there are too many."""

import io
import json
import logging
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest

from ksana.domain.outcomes import Exchange
from ksana.domain.states import Reason, State
from ksana.observe.logs import JsonFormatter
from ksana.observe.redaction import Redactor
from ksana.observe.run_log import LINES_PER_SECOND, LogObserver, log, shown_run_id
from tests.observe.builders import NOON, fired, gap, job, moved, run


class Written:
    """The lines of one test, and the clock and timers of its observer."""

    def __init__(self) -> None:
        self.stream = io.StringIO()
        self.now = NOON
        self.timers: list[Callable[[], None]] = []
        self.observer = LogObserver(
            lambda: self.now, lambda run_id: f"trace-{run_id}", announced=["code"], later=self._later
        )

    def _later(self, seconds: float, call: Callable[[], None]) -> None:
        self.timers.append(call)

    @property
    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.stream.getvalue().splitlines()]

    @property
    def only(self) -> dict[str, Any]:
        [line] = self.lines
        return line


@pytest.fixture
def written() -> Iterator[Written]:
    kept = Written()
    handler = logging.StreamHandler(kept.stream)
    handler.setFormatter(JsonFormatter(Redactor()))
    before = log.level, log.propagate
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    log.propagate = False
    yield kept
    log.removeHandler(handler)
    log.level, log.propagate = before
    log.setLevel(before[0])


def test_a_finished_run_is_one_line_with_every_field(written: Written) -> None:
    """C-20, C-139: the fields the tasks document names, `ts` aside, which is the line's own."""
    exchange = Exchange(request_line="POST https://example.com/hook?x=1", response_code=200)
    written.observer.on_moved([moved(run(), job(ref="job_a"), exchange)], NOON)
    expected = {
        "level": "INFO",
        "msg": "run succeeded",
        "component": "engine",
        "run_id": 41,
        "job_id": 7,
        "task_id": 7,
        "schedule_id": "job_a",
        "name": "nightly",
        "job_name": "nightly",
        "attempt": 1,
        "status": "SUCCESS",
        "trace_id": "trace-41",
        "latency_ms": 120.0,
        "target_url": "https://example.com/hook?x=1",
        "code": 200,
    }
    assert expected.items() <= written.only.items()
    assert "error" not in written.only and "err" not in written.only


@pytest.mark.parametrize(
    ("state", "reason", "level", "message"),
    [
        (State.FAILED, None, "ERROR", "run failed"),
        (State.TIMEOUT, Reason.CALLBACK_TIMEOUT, "ERROR", "run timed out"),
        (State.DEAD_LETTER, None, "ERROR", "run became a dead letter"),
        (State.RETRYING, None, "WARNING", "run failed and is tried again"),
        (State.RETRYING, Reason.LEASE_LAPSED, "WARNING", "run lost its worker and is tried again"),
        (State.RETRYING, Reason.OPERATOR, "INFO", "run is tried again on request"),
        (State.RETRYING, Reason.SHUTDOWN, "INFO", "run handed back by a stopping node"),
        (State.CANCELED, Reason.OPERATOR, "INFO", "run canceled"),
        (State.CALLBACK_PENDING, None, "INFO", "run awaits its callback"),
        (State.STOPPING, Reason.OPERATOR, "INFO", "run is to stop"),
    ],
)
def test_how_a_run_ended_decides_level_and_words(
    written: Written, state: State, reason: Reason | None, level: str, message: str
) -> None:
    written.observer.on_moved([moved(run(state, reason=reason, error="boom"), job())], NOON)
    line = written.only
    assert (line["level"], line["msg"], line["status"]) == (level, message, state.value)
    assert line["error"] == line["err"] == "boom"
    assert line.get("reason") == (reason.value if reason else None)


def test_a_retry_says_when(written: Written) -> None:
    written.observer.on_moved([moved(run(State.RETRYING, due_at=NOON + timedelta(seconds=5)), job())], NOON)
    assert written.only["retry_at"] == "2026-03-01T12:00:05.000Z"


def test_a_step_of_a_chain_names_its_run_and_node(written: Written) -> None:
    written.observer.on_moved([moved(run(job_id=None, parent_id=3, step="extract"))], NOON)
    # J-66: the chain's run as its surface shows it, the node and the attempt.
    assert (written.only["runId"], written.only["nodeId"], written.only["attempt"]) == (
        shown_run_id("trace-3"),
        "extract",
        1,
    )
    assert shown_run_id(f"{11:016x}{3:016x}") == "00000000-0000-000b-0000-000000000003"
    assert "job_id" not in written.only


def test_a_callback_token_in_an_error_is_masked(written: Written) -> None:
    written.observer.on_moved([moved(run(State.FAILED, error="POST /callbacks/" + "a" * 32 + " refused"))], NOON)
    assert written.only["error"] == "POST /callbacks/*** refused"


def test_beyond_the_allowance_runs_are_counted_and_told_in_one_line(written: Written) -> None:
    many = [moved(run(id=i), job()) for i in range(LINES_PER_SECOND + 400)]
    written.observer.on_moved(many, NOON)
    assert len(written.lines) == LINES_PER_SECOND
    assert len(written.timers) == 1
    written.timers.pop()()
    summary = written.lines[-1]
    assert summary["msg"] == "400 more not listed: 400 SUCCESS"
    assert (summary["level"], summary["unlisted"], summary["statuses"]) == ("INFO", 400, {"SUCCESS": 400})


def test_each_second_has_its_own_allowance(written: Written) -> None:
    many = [moved(run(id=i), job()) for i in range(LINES_PER_SECOND)]
    for seconds in (0, 0.5, 1):
        written.observer.on_moved(many, NOON + timedelta(seconds=seconds))
    assert len(written.lines) == 2 * LINES_PER_SECOND


def test_a_flood_of_successes_hides_no_failure(written: Written) -> None:
    many = [moved(run(id=i), job()) for i in range(1000)]
    written.observer.on_moved([*many, moved(run(State.FAILED, id=5000), job())], NOON)
    assert [line["run_id"] for line in written.lines if line["level"] == "ERROR"] == [5000]


def test_a_flood_of_failures_is_counted_by_how_they_ended(written: Written) -> None:
    failures = [moved(run(State.FAILED, id=i), job()) for i in range(LINES_PER_SECOND)]
    more = [moved(run(state, id=i), job()) for i, state in enumerate([State.FAILED, State.TIMEOUT, State.TIMEOUT])]
    written.observer.on_moved(failures + more, NOON)
    written.observer.flush()
    assert written.lines[-1]["statuses"] == {"TIMEOUT": 2, "FAILED": 1}
    assert written.lines[-1]["level"] == "ERROR"
    written.observer.flush()
    assert len(written.lines) == LINES_PER_SECOND + 1


def test_debug_lists_every_run_and_every_begin(written: Written) -> None:
    log.setLevel(logging.DEBUG)
    many = [moved(run(id=i), job()) for i in range(LINES_PER_SECOND + 5)]
    written.observer.on_moved(many, NOON)
    written.observer.on_started([fired(run(State.RUNNING), job())], NOON)
    assert len(written.lines) == LINES_PER_SECOND + 6
    assert written.lines[-1]["msg"] == "attempt begins"


def test_above_info_successes_are_neither_listed_nor_counted(written: Written) -> None:
    log.setLevel(logging.WARNING)
    written.observer.on_moved([moved(run(id=i), job()) for i in range(500)], NOON)
    written.observer.flush()
    assert written.lines == []


def test_a_fired_run_of_an_announced_surface_is_told_with_its_next(written: Written) -> None:
    scheduled = run(State.SCHEDULED, surface="code", slot_at=NOON)
    written.observer.on_fired([fired(scheduled, job(ref="report")), fired(run(State.SCHEDULED), job())], [], NOON)
    expected = {
        "level": "INFO",
        "msg": "Scheduled job enqueued",
        "component": "scheduler",
        "schedule_id": "report",
        "job_name": "nightly",
        "job_id": 7,
        "run_id": 41,
        "priority": "normal",
        "next_run": "2026-03-01T12:01:00.000Z",
    }
    assert expected.items() <= written.only.items()


def test_missed_skipped_and_left_out_instants_are_told(written: Written) -> None:
    runs = [
        fired(run(State.MISSED, reason=Reason.MISFIRE), job()),
        fired(run(State.SKIPPED, reason=Reason.OVERLAP), job()),
    ]
    written.observer.on_fired(runs, [gap(3), gap(2, Reason.PAUSED, job_id=8)], NOON)
    told = [(line["level"], line["msg"], line["reason"]) for line in written.lines]
    assert told == [
        ("WARNING", "run missed its instant", "misfire"),
        ("INFO", "run skipped", "overlap"),
        ("WARNING", "3 planned instants got no run", "misfire"),
        ("INFO", "2 planned instants got no run", "paused"),
    ]
    left_out = written.lines[2]
    assert (left_out["name"], left_out["from"], left_out["to"]) == (
        "nightly",
        "2026-03-01T11:57:00.000Z",
        "2026-03-01T11:59:00.000Z",
    )


def test_late_results_are_a_warning(written: Written) -> None:
    written.observer.on_lost(frozenset(range(30)), NOON)
    assert (written.only["level"], written.only["count"], len(written.only["run_ids"])) == ("WARNING", 30, 20)
    # A callback or an operator may have been first, so nothing is said of newer attempts, nor of what is kept.
    assert written.only["msg"] == "30 results came too late and decide nothing: these runs had moved on already"


def test_an_outage_is_told_once_and_its_end_with_how_long_it_took(written: Written) -> None:
    written.observer.on_store(False, "connection refused")
    written.observer.on_store(False, "connection refused")
    written.now += timedelta(seconds=90)
    written.observer.on_store(True, "")
    written.observer.on_store(True, "")
    away, back = written.lines
    assert (away["level"], away["error"], away["component"]) == ("ERROR", "connection refused", "store")
    assert (back["level"], back["downtime_ms"]) == ("INFO", 90000.0)


@pytest.mark.parametrize(("seconds", "way"), [(30, "forward"), (-30, "back")])
def test_a_clock_step_is_a_warning(written: Written, seconds: int, way: str) -> None:
    written.observer.on_clock_jump(timedelta(seconds=seconds))
    assert (written.only["level"], written.only["msg"]) == ("WARNING", f"the wall clock was set {way} by 30.000 s")


async def test_what_was_not_listed_is_told_by_the_loop_unless_told_otherwise(written: Written) -> None:
    observer = LogObserver(lambda: NOON, str)
    observer.on_moved([moved(run(id=i), job()) for i in range(LINES_PER_SECOND + 1)], NOON)
    observer.flush()
    assert written.lines[-1]["unlisted"] == 1
