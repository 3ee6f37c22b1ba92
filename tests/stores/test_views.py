"""The views `tasks`, `task_runs` and `async_callbacks`: what the documented tables held, to be read only."""

import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from ksana.domain.callbacks import CallbackRecord, CallbackStatus, Heard
from ksana.domain.jobs import TargetSpec
from ksana.domain.moves import Move, call_back, overdue, settle
from ksana.domain.outcomes import Outcome, Verdict
from ksana.domain.policies import Misfire, MisfireRule, Overlap, OverlapRule, Retry, RetryStrategy, Timeouts
from ksana.domain.ports import Store
from ksana.domain.runs import Run
from ksana.domain.schedules import CronSchedule
from ksana.domain.states import Event, Reason, State
from ksana.stores.sql.statements import Statement
from ksana.stores.sql.store import SqlStore
from tests.stores.builders import HOUR, NOW, SECOND, a_job, a_move, a_run, an_attempt, an_exchange, claim, get, put
from tests.stores.conftest import SQL_STORES, MakeStore

TASKS = (
    "id name description cron_expr timezone exec_type http_method target_url headers_json body_template timeout_seconds"
    " retry_policy_json max_concurrency concurrency_policy misfire_policy catchup_limit callback_method"
    " callback_timeout_sec status version created_at updated_at deleted"
)
TASK_RUNS = (
    "id task_id scheduled_time start_time end_time status attempt request_headers request_body response_code"
    " response_body error_message next_retry_time callback_token callback_deadline trace_id created_at updated_at"
)
ASYNC_CALLBACKS = "id task_run_id received_at headers_json body status"

JOB: dict[str, Any] = {
    "surface": "tasks",
    "name": "名 one 🙂",
    "description": "all of it",
    "schedule": CronSchedule("0 */5 * * * *", "Asia/Shanghai"),
    "target": TargetSpec(
        "http",
        {"method": "PUT", "url": "http://sink/x", "headers": {"X-A": "b"}, "body": "{{run_id}} 🙂", "mode": "async"},
    ),
    "retry": Retry(4, RetryStrategy.EXPONENTIAL, timedelta(seconds=2), 2.0, timedelta(days=1, seconds=3)),
    "overlap": Overlap(OverlapRule.SKIP, 0),
    "misfire": Misfire(MisfireRule.CATCH_UP, 7),
    "timeouts": Timeouts(total=timedelta(seconds=15, milliseconds=500), callback=timedelta(days=2, minutes=1)),
    "extras": {"callback_method": "PUT", "retry_policy": {}},
}


@pytest.fixture(params=SQL_STORES)
def make_store(request: pytest.FixtureRequest) -> MakeStore:
    made: MakeStore = request.getfixturevalue(f"{request.param}_stores")
    return made


@pytest.fixture
async def store(make_store: MakeStore) -> AsyncIterator[Store]:
    store = make_store()
    await store.open()
    yield store
    await store.close()


async def seen(store: Store, view: str, columns: str) -> list[dict[str, Any]]:
    assert isinstance(store, SqlStore)
    names = columns.split()
    rows = await store._database.read(
        lambda tx: tx.rows(Statement(f"SELECT {', '.join(names)} FROM {view} ORDER BY id"))
    )
    return [dict(zip(names, row, strict=True)) for row in rows]


def instant(value: Any) -> datetime | None:
    """A date and time however the driver gives it."""
    if value is None:
        return None
    return (value if isinstance(value, datetime) else datetime.fromisoformat(value)).replace(tzinfo=UTC)


def parsed(value: Any) -> Any:
    return json.loads(value) if isinstance(value, str | bytes) else value


async def test_tasks_has_the_columns_of_the_document(store: Store) -> None:
    """C-57, C-65, C-77: each of the 23 columns, text in any script."""
    await store.add_jobs([a_job(1, **JOB), a_job(2, surface="v2")])
    [row] = await seen(store, "tasks", TASKS)
    assert (instant(row.pop("created_at")), instant(row.pop("updated_at"))) == (NOW, NOW)
    assert parsed(row.pop("headers_json")) == {"X-A": "b"}
    policy = {"max_retries": 3, "initial_delay": 2, "strategy": "exponential", "max_delay": 86403}
    assert parsed(row.pop("retry_policy_json")) == policy
    assert row == {
        "id": 1,
        "name": "名 one 🙂",
        "description": "all of it",
        "cron_expr": "0 */5 * * * *",
        "timezone": "Asia/Shanghai",
        "exec_type": "ASYNC",
        "http_method": "PUT",
        "target_url": "http://sink/x",
        "body_template": "{{run_id}} 🙂",
        "timeout_seconds": 15,
        "max_concurrency": 0,
        "concurrency_policy": "SKIP",
        "misfire_policy": "CATCH_UP_LIMITED",
        "catchup_limit": 7,
        "callback_method": "PUT",
        "callback_timeout_sec": 2 * 86400 + 60,
        "status": "ENABLED",
        "version": 1,
        "deleted": 0,
    }


async def test_a_task_that_says_nothing_shows_the_defaults_and_a_deleted_one_stays(store: Store) -> None:
    """C-61, C-66, C-81: soft delete keeps the row."""
    said = {**JOB, "extras": {}, "enabled": False, "deleted_at": NOW, "misfire": Misfire(), "overlap": Overlap()}
    await store.add_jobs([a_job(1, **said)])
    [row] = await seen(store, "tasks", TASKS)
    assert (row["status"], row["deleted"], row["callback_method"]) == ("DISABLED", 1, "POST")
    assert (row["misfire_policy"], row["concurrency_policy"], row["max_concurrency"]) == ("FIRE_NOW", "QUEUE", 1)
    assert row["retry_policy_json"] is None


async def ended(store: Store, run: Run, *moves: Move) -> None:
    turn = await store.turn(moves)
    assert not turn.lost


async def test_task_runs_has_the_columns_of_the_document(store: Store) -> None:
    """C-67, C-70, C-71: the newest attempt's request and response, whole."""
    await store.add_jobs([a_job(1, **JOB)])
    await put(store, a_run(7, surface="tasks", slot_at=NOW - SECOND, callback_token="t" * 32))
    [one] = await claim(store)
    exchange = an_exchange(
        request_headers={"X-A": "b"}, request_body=b"sent", response_code=503, response_body="came 🙂".encode()
    )
    outcome = Outcome(Verdict.RETRY, error="no luck", code=503, exchange=exchange)
    assert one.job is not None
    moved = settle(one.run, one.job, outcome, NOW + SECOND)
    await ended(store, one.run, Move(one.run.epoch, moved, an_attempt(one.run, code=503, exchange=exchange)))
    [row] = await seen(store, "task_runs", TASK_RUNS)
    identity = await store.identity()
    assert parsed(row.pop("request_headers")) == {"X-A": "b"}
    for name, at in {
        "scheduled_time": NOW - SECOND,
        "start_time": NOW,
        "end_time": None,
        "next_retry_time": NOW + 3 * SECOND,
        "callback_deadline": None,
        "created_at": NOW,
        "updated_at": NOW,
    }.items():
        assert (name, instant(row.pop(name))) == (name, at)
    assert row == {
        "id": 7,
        "task_id": 1,
        "status": "RETRYING",
        "attempt": 1,
        "request_body": "sent",
        "response_code": 503,
        "response_body": "came 🙂",
        "error_message": "no luck",
        "callback_token": "t" * 32,
        "trace_id": f"{identity:016x}{7:016x}",
    }


async def test_a_body_that_is_no_text_does_not_break_the_view(store: Store) -> None:
    await store.add_jobs([a_job(1, **JOB)])
    await put(store, a_run(7, surface="tasks"))
    [one] = await claim(store)
    exchange = an_exchange(response_body=b"\xff\x00\xfe binary")
    move = a_move(one.run, Event.SUCCEED, attempt=an_attempt(one.run, exchange=exchange))
    await ended(store, one.run, move)
    assert isinstance(store, SqlStore)
    length = Statement("SELECT LENGTH(response_body) FROM task_runs")
    [(found,)] = await store._database.read(lambda tx: tx.rows(length))
    assert found > 0


SHOWN: list[tuple[State, Reason | None, str]] = [
    (State.WAITING, Reason.SLOT, "SCHEDULED"),
    (State.SCHEDULED, None, "SCHEDULED"),
    (State.SUCCESS, None, "SUCCESS"),
    (State.SUCCESS, Reason.CALLBACK, "CALLBACK_SUCCESS"),
    (State.FAILED, Reason.CALLBACK, "FAILED"),
    (State.TIMEOUT, None, "TIMEOUT"),
    (State.TIMEOUT, Reason.CALLBACK_TIMEOUT, "FAILED_TIMEOUT"),
    (State.CANCELED, Reason.OPERATOR, "CANCELED"),
    (State.SKIPPED, Reason.OVERLAP, "SKIPPED"),
    (State.MISSED, Reason.MISFIRE, "SKIPPED"),
    (State.DEAD_LETTER, None, "FAILED"),
]


async def test_only_states_of_the_document_are_shown(store: Store) -> None:
    """C-47, C-69: eleven states and no other, attempts from 1."""
    await store.add_jobs([a_job(1, **JOB)])
    for id, (state, reason, _) in enumerate(SHOWN, 1):
        ended_at = NOW + HOUR if state.is_final else None
        await put(store, a_run(id, surface="tasks", state=state, reason=reason, ended_at=ended_at))
    rows = await seen(store, "task_runs", TASK_RUNS)
    assert [row["status"] for row in rows] == [status for _, _, status in SHOWN]
    for row, (state, _, _) in zip(rows, SHOWN, strict=True):
        ended_at = NOW + HOUR if state.is_final else None
        assert (row["attempt"], instant(row["end_time"])) == (1, ended_at)
        assert instant(row["updated_at"]) == (ended_at or NOW)


async def test_async_callbacks_has_one_row_for_each(store: Store) -> None:
    """C-74: headers and raw body of every callback, RECEIVED or IGNORED."""
    await store.add_jobs([a_job(1, **JOB), a_job(2)])
    await put(store, a_run(1, surface="tasks", callback_token="t" * 32), a_run(2, 2, callback_token="u" * 32))
    await claim(store)
    run = await get(store, 1)
    body = '{"status": "SUCCESS", "data": "🙂"}'
    first = CallbackRecord(
        id=1, run_id=1, received_at=NOW, status=CallbackStatus.RECEIVED, headers={"x-a": "b"}, body=body.encode()
    )
    assert await store.hear(Heard(first, Move(run.epoch, call_back(run, True, NOW)))) is not None
    later = CallbackRecord(id=2, run_id=1, received_at=NOW + HOUR, status=CallbackStatus.IGNORED, note="late")
    assert await store.hear(Heard(later)) is not None
    other = CallbackRecord(id=3, run_id=2, received_at=NOW, status=CallbackStatus.IGNORED, note="not a task's")
    assert await store.hear(Heard(other)) is not None
    rows = await seen(store, "async_callbacks", ASYNC_CALLBACKS)
    assert [instant(row.pop("received_at")) for row in rows] == [NOW, NOW + HOUR]
    assert [parsed(row.pop("headers_json")) for row in rows] == [{"x-a": "b"}, {}]
    assert rows == [
        {"id": 1, "task_run_id": 1, "body": body, "status": "RECEIVED"},
        {"id": 2, "task_run_id": 1, "body": "", "status": "IGNORED"},
    ]


async def test_a_run_whose_callback_never_came_shows_when_it_was_due(store: Store) -> None:
    """C-56: callback_deadline while it waits, FAILED_TIMEOUT after."""
    await store.add_jobs([a_job(1, **JOB)])
    await put(store, a_run(1, surface="tasks", callback_token="t" * 32))
    [one] = await claim(store)
    await ended(store, one.run, a_move(one.run, Event.ACCEPT, deadline_at=NOW + HOUR))
    [row] = await seen(store, "task_runs", TASK_RUNS)
    assert (row["status"], instant(row["callback_deadline"])) == ("CALLBACK_PENDING", NOW + HOUR)
    waiting = await get(store, 1)
    await ended(store, waiting, Move(waiting.epoch, overdue(waiting, NOW + HOUR)))
    [row] = await seen(store, "task_runs", TASK_RUNS)
    assert (row["status"], row["callback_deadline"]) == ("FAILED_TIMEOUT", None)
