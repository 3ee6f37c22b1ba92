"""What a node shows to Prometheus: names, types, labels, and how they move."""

from collections.abc import AsyncIterator
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from ksana.domain.changes import JobChange
from ksana.domain.claims import Claimed
from ksana.domain.errors import StoreUnavailable
from ksana.domain.jobs import Job
from ksana.domain.outcomes import Exchange
from ksana.domain.policies import Priority
from ksana.domain.ports import Store
from ksana.domain.queries import Counts
from ksana.domain.runs import Run, Trigger
from ksana.domain.states import Reason, State
from ksana.observe.metrics import MetricsObserver
from ksana.stores.open import open_store
from tests.observe.builders import NOON, fired, gap, job, moved, run

NAMES = {
    ("cronjob_task_total", "gauge"): ("status",),
    ("ksana_jobs", "gauge"): ("surface", "status"),
    ("cronjob_run_total", "counter"): ("status",),
    ("cronjob_run_duration_seconds", "histogram"): ("task_id",),
    ("cronjob_run_retries_total", "counter"): ("task_id",),
    ("cronjob_http_request_total", "counter"): ("method", "code"),
    ("cronjob_callback_pending", "gauge"): (),
    ("cronjob_scheduler_scan_latency", "histogram"): (),
    ("cronjob_misfire_total", "counter"): ("task_id",),
    ("scheduler_runs_total", "counter"): ("schedule_id", "status"),
    ("scheduler_run_duration_seconds", "histogram"): ("schedule_id",),
    ("scheduler_last_run_timestamp", "gauge"): ("schedule_id",),
    ("scheduler_next_run_timestamp", "gauge"): ("schedule_id",),
    ("scheduler_lock_failures_total", "counter"): ("schedule_id",),
    ("scheduler_lock_contended_total", "counter"): ("schedule_id",),
    ("jobs_due_count", "gauge"): (),
    ("jobs_lag_seconds", "gauge"): (),
    ("job_success_rate", "gauge"): (),
    ("job_retry_rate", "gauge"): (),
    ("dead_letter_count", "gauge"): (),
    ("ksana_runs_total", "counter"): ("state", "kind"),
    ("ksana_run_seconds", "histogram"): ("kind",),
    ("ksana_lateness_seconds", "histogram"): (),
    ("ksana_fires_total", "counter"): ("decision",),
    ("ksana_fenced_results_total", "counter"): (),
    ("ksana_store_up", "gauge"): (),
    ("ksana_store_outages_total", "counter"): (),
    ("ksana_clock_jumps_total", "counter"): (),
    ("ksana_executing", "gauge"): (),
    ("ksana_build_info", "gauge"): ("version", "python"),
    ("jobchain_run_total", "counter"): ("status",),
    ("jobchain_node_duration_seconds", "histogram"): ("type",),
    ("jobchain_inflight_nodes", "gauge"): (),
}


class World:
    """An observer, the clock it reads, and what a scrape of it shows."""

    def __init__(self, **options: Any) -> None:
        self.now = NOON
        self.observer = MetricsObserver(lambda: self.now, version="1.2.3", **options)

    def scrape(self) -> dict[tuple[str, ...], float]:
        """Every sample by its name and its label values, in the order they are written."""
        text = self.observer.render()[0].decode()
        families = text_string_to_metric_families(text)
        return {(s.name, *s.labels.values()): s.value for family in families for s in family.samples}


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
async def store(fresh_sqlite_path: Path) -> AsyncIterator[Store]:
    store = open_store(f"sqlite:///{fresh_sqlite_path}")
    await store.open()
    yield store
    await store.close()


async def add_runs(store: Store, *runs: Run) -> None:
    for each in runs:
        await store.add_run(each.job_id or 0, partial(_given, each))


def _given(made: Run, _job: Job, _active: int) -> Run:
    return made


async def test_every_name_type_and_label_is_as_promised(world: World, store: Store) -> None:
    await store.add_jobs([job(next_fire_at=NOON + timedelta(minutes=1), next_slot_at=NOON + timedelta(minutes=1))])
    observer = world.observer
    observer.watch_executing(lambda: 3)
    exchange = Exchange(request_line="GET https://example.com", response_code=200)
    observer.on_moved([moved(run(), job(), exchange), moved(run(State.RETRYING), job())], NOON)
    observer.on_fired([fired(run(State.SCHEDULED), job())], [gap(1)], NOON)
    observer.on_moved([moved(run(parent_id=3, step="a"))], NOON)
    observer.schedules.lock_failed("7")
    observer.schedules.lock_contended("7")
    await observer.refresh(store, NOON)
    body, content_type = observer.render()
    assert content_type == "text/plain; version=0.0.4; charset=utf-8"
    seen = {}
    for family in text_string_to_metric_families(body.decode()):
        name = f"{family.name}_total" if family.type == "counter" else family.name
        labels = [label for label in family.samples[0].labels if label != "le"]
        seen[name, family.type] = tuple(labels)
    assert {key: labels for key, labels in seen.items() if not key[0].startswith("process_")} == NAMES


def test_the_names_stand_literally_in_the_text(world: World) -> None:
    lines = world.observer.render()[0].decode().splitlines()
    assert {f"# TYPE {name} {kind}" for name, kind in NAMES} <= set(lines)


def test_two_nodes_in_one_process_do_not_meet(world: World) -> None:
    other = World()
    world.observer.on_moved([moved(run(), job())], NOON)
    assert world.scrape()["cronjob_run_total", "SUCCESS"] == 1
    assert other.scrape()["cronjob_run_total", "SUCCESS"] == 0


def test_runs_that_end_are_counted_by_how_and_timed(world: World) -> None:
    world.observer.on_moved([moved(run(seconds=0.2), job()), moved(run(State.FAILED, seconds=3), job())], NOON)
    world.observer.on_moved([moved(run(seconds=0.2, kind="python"), job())], NOON)
    seen = world.scrape()
    assert seen["cronjob_run_total", "SUCCESS"] == 2
    assert seen["cronjob_run_total", "FAILED"] == 1
    assert seen["ksana_runs_total", "SUCCESS", "http"] == seen["ksana_runs_total", "SUCCESS", "python"] == 1
    assert seen["cronjob_run_duration_seconds_count", "7"] == 3
    assert seen["cronjob_run_duration_seconds_sum", "7"] == pytest.approx(3.4)
    assert seen["cronjob_run_duration_seconds_bucket", "7", "0.25"] == 2
    assert seen["ksana_run_seconds_count", "http"] == 2
    assert seen["ksana_run_seconds_sum", "python"] == pytest.approx(0.2)


def test_a_run_that_never_began_has_no_duration(world: World) -> None:
    world.observer.on_moved([moved(run(State.CANCELED, started_at=None))], NOON)
    seen = world.scrape()
    assert seen["cronjob_run_total", "CANCELED"] == 1
    assert ("cronjob_run_duration_seconds_count", "7") not in seen


def test_an_item_without_a_job_is_in_no_series_of_a_job(world: World) -> None:
    world.observer.on_moved([moved(run(job_id=None)), moved(run(State.RETRYING, job_id=None))], NOON)
    seen = world.scrape()
    assert seen["cronjob_run_total", "SUCCESS"] == seen["ksana_run_seconds_count", "http"] == 1
    assert not [key for key in seen if key[0].startswith(("cronjob_run_duration", "cronjob_run_retries"))]


def test_retries_are_counted_but_not_what_people_and_stops_send_back(world: World) -> None:
    reasons = [None, Reason.LEASE_LAPSED, Reason.OPERATOR, Reason.SHUTDOWN]
    world.observer.on_moved([moved(run(State.RETRYING, reason=reason), job()) for reason in reasons], NOON)
    assert world.scrape()["cronjob_run_retries_total", "7"] == 2


def test_rates_are_zero_at_first_and_then_what_they_say(world: World) -> None:
    seen = world.scrape()
    assert seen["job_success_rate",] == seen["job_retry_rate",] == 0
    states = [State.SUCCESS] * 3 + [State.TIMEOUT, State.RETRYING, State.CANCELED]
    world.observer.on_moved([moved(run(state), job()) for state in states], NOON)
    seen = world.scrape()
    assert seen["job_success_rate",] == 3 / 4
    assert seen["job_retry_rate",] == 1 / 5


@pytest.mark.parametrize(
    ("line", "code", "labels"),
    [
        ("POST https://example.com/x", 503, ("POST", "503")),
        ("GET https://example.com/x", None, ("GET", "error")),
        ("BREW https://example.com/pot", 418, ("other", "418")),
    ],
)
def test_requests_are_counted_by_method_and_status(
    world: World, line: str, code: int | None, labels: tuple[str, str]
) -> None:
    exchange = Exchange(request_line=line, response_code=code)
    world.observer.on_moved([moved(run(State.RETRYING), job(), exchange)], NOON)
    assert world.scrape()["cronjob_http_request_total", *labels] == 1


def test_fires_are_counted_by_decision_and_timed_until_stored(world: World) -> None:
    runs = [
        fired(run(State.RUNNING, trigger=Trigger.SCHEDULE), job(ref="report")),
        fired(run(State.WAITING, trigger=Trigger.CATCH_UP), job(ref="report")),
        fired(run(State.SKIPPED, reason=Reason.OVERLAP), job(ref="report")),
        fired(run(State.MISSED, reason=Reason.MISFIRE), job(ref="report")),
    ]
    world.observer.on_fired(runs, [gap(5), gap(2, Reason.PAUSED)], NOON + timedelta(milliseconds=20))
    seen = world.scrape()
    decisions = {key[1]: value for key, value in seen.items() if key[0] == "ksana_fires_total"}
    assert decisions == {"fired": 2, "skipped": 1, "missed": 1, "left_out": 7}
    assert seen["cronjob_misfire_total", "7"] == 1 + 1 + 5
    assert seen["cronjob_run_total", "SKIPPED"] == 2
    assert seen["ksana_runs_total", "MISSED", "http"] == 1
    assert seen["cronjob_scheduler_scan_latency_count",] == 1
    assert seen["cronjob_scheduler_scan_latency_sum",] == pytest.approx(0.02)
    assert seen["scheduler_runs_total", "report", "success"] == 2
    assert seen["scheduler_run_duration_seconds_sum", "report"] == pytest.approx(0.04)
    assert seen["scheduler_last_run_timestamp", "report"] == NOON.timestamp()


def test_what_goes_wrong_with_a_schedule_is_counted_under_its_id(world: World) -> None:
    world.observer.schedules.failed("report")
    world.observer.schedules.lock_failed("report")
    world.observer.schedules.lock_contended("report")
    seen = world.scrape()
    assert seen["scheduler_runs_total", "report", "error"] == 1
    assert seen["scheduler_lock_failures_total", "report"] == seen["scheduler_lock_contended_total", "report"] == 1


def test_lateness_is_from_due_to_begun_and_never_negative(world: World) -> None:
    early, late = run(State.RUNNING, due_at=NOON + timedelta(seconds=1)), run(State.RUNNING)
    world.observer.on_started([fired(early, job()), fired(late, job())], NOON + timedelta(seconds=0.3))
    seen = world.scrape()
    assert seen["ksana_lateness_seconds_count",] == 2
    assert seen["ksana_lateness_seconds_sum",] == pytest.approx(0.3)
    assert seen["ksana_lateness_seconds_bucket", "0.001"] == 1


def test_outages_fenced_results_and_clock_steps_are_counted(world: World) -> None:
    before = world.scrape()
    assert before["ksana_store_up",] == 1 and before["ksana_store_outages_total",] == 0
    world.observer.on_store(False, "gone")
    world.observer.on_lost({1, 2}, NOON)
    world.observer.on_clock_jump(timedelta(seconds=-5))
    seen = world.scrape()
    assert seen["ksana_store_up",] == 0
    assert seen["ksana_store_outages_total",] == seen["ksana_clock_jumps_total",] == 1
    assert seen["ksana_fenced_results_total",] == 2
    world.observer.on_store(True, "")
    assert world.scrape()["ksana_store_up",] == 1


def test_the_number_under_way_is_asked_for_at_each_scrape(world: World) -> None:
    under_way = [2, 5]
    world.observer.watch_executing(under_way.pop)
    assert world.scrape()["ksana_executing",] == 5
    assert world.scrape()["ksana_executing",] == 2


def test_a_deleted_job_takes_its_series_along_and_a_late_end_does_not_bring_them_back(world: World) -> None:
    observer = world.observer
    observer.on_fired([fired(run(State.RUNNING), job())], [gap(1)], NOON)
    observer.on_moved([moved(run(), job()), moved(run(State.RETRYING), job())], NOON)
    observer.forget_job(7)
    assert not [key for key in world.scrape() if "7" in key]
    observer.on_moved([moved(run(), job())], NOON)
    seen = world.scrape()
    assert not [key for key in seen if "7" in key]
    assert seen["cronjob_run_duration_seconds_count", "other"] == 1


def test_beyond_the_limit_further_jobs_share_a_series() -> None:
    world = World(max_jobs=2)
    for job_id in range(1, 6):
        world.observer.on_moved([moved(run(job_id=job_id), job(job_id))], NOON)
        world.observer.on_fired([fired(run(State.RUNNING, job_id=job_id), job(job_id))], [], NOON)
    seen = world.scrape()
    for name in ("cronjob_run_duration_seconds_count", "scheduler_run_duration_seconds_count"):
        assert {key[1]: value for key, value in seen.items() if key[0] == name} == {"1": 1, "2": 1, "other": 3}
    world.observer.forget_job(1)
    world.observer.on_moved([moved(run(job_id=9), job(9))], NOON)
    assert world.scrape()["cronjob_run_duration_seconds_count", "9"] == 1


async def test_gauges_show_what_the_store_holds(world: World, store: Store) -> None:
    tasks = [job(n, surface="tasks", enabled=n != 3) for n in (1, 2, 3)]
    await store.add_jobs([*tasks, job(4), job(5, surface="jobs", enabled=False)])
    await add_runs(
        store,
        run(State.SCHEDULED, id=1, job_id=1, due_at=NOON - timedelta(seconds=90), priority=Priority.LOW),
        run(State.SCHEDULED, id=2, job_id=1, due_at=NOON - timedelta(seconds=10)),
        run(State.SCHEDULED, id=3, job_id=1, due_at=NOON + timedelta(seconds=10)),
        run(State.CALLBACK_PENDING, id=4, job_id=2),
        run(State.DEAD_LETTER, id=5, job_id=2),
    )
    await world.observer.refresh(store, NOON)
    seen = world.scrape()
    assert (seen["cronjob_task_total", "ENABLED"], seen["cronjob_task_total", "DISABLED"]) == (2, 1)
    assert {key[1:]: count for key, count in seen.items() if key[0] == "ksana_jobs"} == {
        ("tasks", "ENABLED"): 2,
        ("tasks", "DISABLED"): 1,
        ("v2", "ENABLED"): 1,
        ("jobs", "DISABLED"): 1,
    }
    assert seen["cronjob_callback_pending",] == seen["dead_letter_count",] == 1
    assert (seen["jobs_due_count",], seen["jobs_lag_seconds",]) == (2, 90)


async def test_a_surface_whose_jobs_are_all_gone_is_counted_no_more(world: World, store: Store) -> None:
    await store.add_jobs([job(1, surface="jobs")])
    await world.observer.refresh(store, NOON)
    assert world.scrape()["ksana_jobs", "jobs", "ENABLED"] == 1
    await store.change_jobs([JobChange(version=1, job=job(1, surface="jobs", version=2, deleted_at=NOON))])
    await world.observer.refresh(store, NOON + timedelta(seconds=2))
    assert not [key for key in world.scrape() if key[0] == "ksana_jobs"]


async def test_with_nothing_due_the_lag_is_zero(world: World, store: Store) -> None:
    await world.observer.refresh(store, NOON)
    seen = world.scrape()
    assert seen["jobs_due_count",] == seen["jobs_lag_seconds",] == 0


async def test_the_store_is_asked_at_most_once_a_second(world: World, store: Store) -> None:
    await world.observer.refresh(store, NOON)
    await store.add_jobs([job(1, surface="tasks")])
    await world.observer.refresh(store, NOON + timedelta(milliseconds=900))
    assert world.scrape()["cronjob_task_total", "ENABLED"] == 0
    await world.observer.refresh(store, NOON + timedelta(seconds=1))
    assert world.scrape()["cronjob_task_total", "ENABLED"] == 1
    await world.observer.refresh(store, NOON - timedelta(hours=1))
    assert world.scrape()["jobs_due_count",] == 0


async def test_a_scrape_notices_jobs_deleted_elsewhere_and_when_the_others_fire_next(
    world: World, store: Store
) -> None:
    next_at = NOON + timedelta(minutes=1)
    gone, kept = (job(i, next_fire_at=next_at, next_slot_at=next_at) for i in (1, 2))
    await store.add_jobs([gone, kept])
    world.observer.on_moved([moved(run(job_id=1), gone), moved(run(job_id=2), kept)], NOON)
    await world.observer.refresh(store, NOON)
    assert world.scrape()["scheduler_next_run_timestamp", "1"] == next_at.timestamp()
    deleted = job(1, version=2, enabled=False, deleted_at=NOON)
    await store.change_jobs([JobChange(version=1, job=deleted, moves_cursor=True)])
    await world.observer.refresh(store, NOON + timedelta(seconds=2))
    seen = world.scrape()
    assert not [key for key in seen if "1" in key]
    assert seen["scheduler_next_run_timestamp", "2"] == next_at.timestamp()


class _AwayStore:
    """A store that went away; only what a refresh asks of it is here."""

    async def counts(self, now: object) -> Counts:
        raise StoreUnavailable("connection refused")


async def test_while_the_store_is_away_its_series_are_absent_and_the_rest_is_shown(world: World, store: Store) -> None:
    world.observer.on_moved([moved(run(), job())], NOON)
    await world.observer.refresh(store, NOON)
    away: Any = _AwayStore()
    await world.observer.refresh(away, NOON + timedelta(seconds=5))
    seen = world.scrape()
    assert not {"jobs_due_count", "jobs_lag_seconds", "dead_letter_count", "cronjob_task_total", "ksana_jobs"} & {
        key[0] for key in seen
    }
    assert seen["cronjob_run_total", "SUCCESS"] == 1
    await world.observer.refresh(store, NOON + timedelta(seconds=5))
    assert world.scrape()["jobs_due_count",] == 0


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="only Linux tells what a process uses")
def test_the_process_itself_is_measured(world: World) -> None:
    assert world.scrape()["process_resident_memory_bytes",] > 0


def test_the_program_says_which_it_is(world: World) -> None:
    seen = world.scrape()
    assert any(key[:2] == ("ksana_build_info", "1.2.3") for key in seen)


def test_chains_are_counted_by_how_they_end_and_nodes_by_how_long_they_take(world: World) -> None:
    """J-68"""
    begun = run(State.RUNNING, id=3, kind="chain", reason=Reason.CHILDREN)
    node = run(State.RUNNING, id=4, parent_id=3, step="a", kind="noop")
    world.observer.on_moved([moved(begun)], NOON)
    world.observer.on_started([Claimed(node, None), Claimed(run(State.RUNNING, id=5, parent_id=3), None)], NOON)
    assert world.scrape()[("jobchain_inflight_nodes",)] == 2
    world.observer.on_lost([5], NOON)
    over = run(State.FAILED, id=4, parent_id=3, step="a", kind="noop", seconds=2)
    world.observer.on_moved([moved(over), moved(run(State.CANCELED, id=3, kind="chain"))], NOON)
    seen = world.scrape()
    assert seen[("jobchain_inflight_nodes",)] == 0
    assert seen["jobchain_node_duration_seconds_sum", "noop"] == 2
    statuses = ("started", "success", "failed", "stopped")
    assert [seen["jobchain_run_total", status] for status in statuses] == [1, 0, 0, 1]
