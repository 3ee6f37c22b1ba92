"""Every hot statement walks the index made for it, however long the history grows."""

import re
from typing import Any

import pytest

from ksana.domain.items import SCOPE, Enqueued, Item, Pull, new_item, stored_queue
from ksana.domain.policies import Priority
from ksana.domain.ports import Store
from ksana.domain.queries import RunQuery
from ksana.domain.runs import Run
from ksana.domain.states import Reason, State
from ksana.domain.times import to_micros
from ksana.stores.sql import item_statements, pulling, search, tables
from ksana.stores.sql import statements as sql
from ksana.stores.sql.attempt_rows import attempt_to_row, exchange_to_row
from ksana.stores.sql.job_rows import cursor_to_row, job_to_row
from ksana.stores.sql.run_rows import run_to_row
from ksana.stores.sql.statements import Statement
from ksana.stores.sql.store import SqlStore
from ksana.stores.sql.tx import Database, Tx
from tests.stores.builders import HOUR, NOW, SECOND, a_planned_job, a_run, an_attempt, an_exchange, one_at_a_time
from tests.stores.conftest import SQL_STORES

JOBS = 2_000
RUNS = 20_000
LATER = to_micros(NOW + HOUR)

HANDED_OUT = "ksana_runs_handed_out"
READY, LIVE, ENDED, HELD = "ksana_runs_ready", "ksana_runs_live", "ksana_runs_ended", "ksana_runs_node"

# Where no index is partial, one that leads by state does for runs under way too.
INSTEAD = {"mysql": {HELD: ENDED}, "mariadb": {HELD: ENDED}}

CHANGE = {
    "epoch": 0,
    "state": "SUCCESS",
    "reason": None,
    "failures": 0,
    "reclaims": 0,
    "due_at": None,
    "deadline_at": None,
    "began_at": None,
    "ended_at": LATER,
    "error": "",
}

AFTER = {"after_at": to_micros(NOW), "after_id": 7}

PLANS: list[tuple[str, dict[str, Any], str]] = [
    ("DUE_CURSORS", {"now": LATER, "limit": 50}, "ksana_cursors_due"),
    ("BURSTS", {"after": to_micros(NOW), "until": to_micros(NOW + 2 * SECOND), "least": 50}, "ksana_cursors_due"),
    ("COMING_CURSORS", {"at": to_micros(NOW), "after_id": 7, "limit": 50}, "ksana_cursors_due"),
    ("STANDING_CURSORS", {"ids": [1, 2, 3]}, ""),
    ("MOVE_CURSORS", {"next_slot_at": LATER, "next_fire_at": LATER, "ids": [1, 2, 3]}, ""),
    ("NEXT_FIRE", {}, "ksana_cursors_due"),
    ("LOCK_CURSORS", {"ids": [1, 2, 3]}, ""),
    ("JOBS_BY_ID", {"ids": [1, 2, 3]}, ""),
    ("DUE_RUNS", {"queue": "default", "priority": 2, "now": LATER, "limit": 100}, READY),
    ("NEXT_DUE", {"queue": "default", "priority": 2}, READY),
    ("DUE_ITEMS", {"queue": "@mail", "priority": 2, "now": LATER, "limit": 100}, READY),
    ("DUE_ITEMS_OF_TYPES", {"queue": "@mail", "priority": 2, "now": LATER, "limit": 100, "types": ["a"]}, READY),
    ("SAME_DUE_ITEMS", {"queue": "@mail", "priority": 2, "now": LATER, "limit": 100, "full": ["#a"], **AFTER}, READY),
    ("LATER_DUE_ITEMS", {"queue": "@mail", "priority": 2, "now": LATER, "limit": 100, "full": ["#a"], **AFTER}, READY),
    ("HELD_ITEMS", {"queue": "@mail"}, HANDED_OUT),
    ("HELD_BY_SUBJECT", {"queue": "@mail", "subjects": ["memory/70", "memory/170"]}, HANDED_OUT),
    ("PULL_ITEMS", {"holder": "w", "until": 1, "at": 1, "ids": [1, 2, 3]}, ""),
    ("COUNT_QUEUED", {"first": "@", "last": "A", "now": LATER}, READY),
    ("COUNT_HELD", {"first": "@", "last": "A"}, HANDED_OUT),
    ("COUNT_DEAD_ITEMS", {"first": "@", "last": "A"}, ENDED),
    ("DEAD_BY_ERROR", {"first": "@", "last": "A", "limit": 10}, ENDED),
    ("CLAIM_RUNS", {"node_id": 1, "now": 1, "ids": [1, 2, 3]}, ""),
    ("RUNS_AT_EPOCH", {"ids": list(range(1, 51)), "epoch": 0}, ""),
    ("MOVE_RUNS", {"ids": list(range(1, 51)), **CHANGE}, ""),
    ("ADMIT_RUNS", {"ids": [1, 2, 3]}, ""),
    ("PASS_STEPS", {"passes": [1, 2, 3], "due_at": LATER}, ""),
    ("ACTIVE_RUNS", {"ids": list(range(1, 51))}, LIVE),
    ("HOLDING_RUNS", {"ids": [1, 2, 3]}, LIVE),
    ("WAITED_JOBS", {"ids": [1, 2, 3]}, LIVE),
    ("WAITING_RUNS", {"job_id": 3, "limit": 1}, LIVE),
    ("RUNS_TO_CANCEL", {"job_id": 3, "states": ["WAITING", "SCHEDULED"]}, LIVE),
    ("RESTING_RUNS_FOLLOW", {"job_id": 3, "version": 2}, LIVE),
    ("RUNS_BY_ID", {"ids": [1, 2, 3]}, ""),
    ("RUN_BY_TOKEN", {"token": "token 60"}, "ksana_runs_token"),
    ("LAST_RUN_IDS", {"ids": [1, 2, 3]}, "ksana_runs_job"),
    ("LAST_RUN_IDS", {"ids": [1, 2, 3]}, "ksana_runs_slot"),
    ("LAST_RUN_IDS_IN", {"ids": [1, 2, 3], "states": ["SUCCESS", "FAILED"]}, "ksana_runs_job"),
    ("LAST_RUN_IDS_IN", {"ids": [1, 2, 3], "states": ["SUCCESS", "FAILED"]}, "ksana_runs_slot"),
    ("ATTEMPTS_OF_RUN", {"run_id": 3}, ""),
    ("NEWEST_ATTEMPTS", {"ids": list(range(1, 51)), "most_bytes": 100}, ""),
    ("NEWEST_ATTEMPTS_TOLD", {"ids": list(range(1, 51)), "most_bytes": 100}, ""),
    ("FIRED_SLOTS", {"job_id": 3, "since": 0, "until": LATER, "limit": 10}, "ksana_runs_slot"),
    ("HELD_NODES", {}, HELD),
    ("RUNS_OF_NODES", {"node_ids": [1], "limit": 10}, HELD),
    ("PAST_DEADLINE", {"now": to_micros(NOW), "limit": 10}, "ksana_runs_deadline"),
    ("OLD_RUNS", {"state": "FAILED", "before": LATER, "keep": 3, "limit": 10, "passed": 0}, ENDED),
    ("DROP_ANSWERS", {"before": LATER, "limit": 10}, "ksana_idempotency_age"),
    ("FIRST_ENDED", {"state": "FAILED", "since": 0}, ENDED),
    ("ENDED_BY_MINUTE", {"state": "FAILED", "since": to_micros(NOW), "until": LATER}, ENDED),
    ("COUNT_DUE", {"now": LATER}, READY),
    ("COUNT_DEAD", {}, ENDED),
    ("COUNT_UNFINISHED", {}, ""),
]


def named(name: str) -> Statement:
    found: Statement = getattr(sql, name, None) or getattr(item_statements, name)
    return found


def some_run(n: int) -> Run:
    """One in twenty is alive, as in a store with a past."""
    said: dict[str, Any] = {"state": State.SUCCESS, "ended_at": NOW + n * SECOND}
    match n % 100:
        case 0:
            said = {"state": State.SCHEDULED}
        case 20:
            said = {"state": State.WAITING, "reason": Reason.SLOT}
        case 40:
            said = {"state": State.RUNNING, "node_id": n % 3}
        case 60:
            said = {"state": State.CALLBACK_PENDING, "deadline_at": NOW + n * SECOND, "callback_token": f"token {n}"}
        case 80:
            said = {"state": State.RETRYING, "queue": "slow", "priority": Priority.HIGH}
        case 70:
            said = {"state": State.RUNNING, "queue": "@mail", "subject": f"memory/{n}", "deadline_at": NOW}
        case 10 | 30:
            said["state"] = State.FAILED
        case 50:
            said["state"] = State.DEAD_LETTER
    return a_run(n, n % JOBS, slot_at=NOW + n * SECOND, due_at=NOW + n * SECOND, **said)


async def fill(database: Database) -> None:
    jobs = [a_planned_job(n, NOW + n * SECOND, overlap=one_at_a_time()) for n in range(JOBS)]
    runs = [some_run(n) for n in range(1, RUNS + 1)]
    attempts = [an_attempt(run) for run in runs[: RUNS // 5]]
    answers = [("v2" if n % 100 == 0 else SCOPE, str(n), b"", 200, b"", to_micros(NOW)) for n in range(RUNS)]

    async def insert(tx: Any) -> None:
        await tx.insert(tables.JOBS, [job_to_row(job) for job in jobs])
        await tx.insert(tables.CURSORS, [cursor_to_row(job) for job in jobs])
        await tx.insert(tables.RUNS, [run_to_row(run) for run in runs])
        await tx.insert(tables.ATTEMPTS, [attempt_to_row(attempt) for attempt in attempts])
        await tx.insert(tables.IDEMPOTENCY, answers)
        await tx.insert(tables.EXCHANGES, [exchange_to_row(attempt, an_exchange()) for attempt in attempts])

    await database.write(insert)
    table = " TABLE" if database.dialect.name in ("mysql", "mariadb") else ""
    for name in ("ksana_jobs", "ksana_cursors", "ksana_runs", "ksana_attempts", "ksana_exchanges", "ksana_idempotency"):
        await database.write(lambda tx, name=name: tx.rows(Statement(f"ANALYZE{table} {name}")))  # type: ignore[misc]


async def plan(database: Database, statement: Statement, values: dict[str, Any]) -> list[str]:
    """The steps of a plan, one line each."""
    explain = "EXPLAIN QUERY PLAN " if database.dialect.name == "sqlite" else "EXPLAIN "
    rows = await database.write(lambda tx: tx.rows(Statement(explain + statement.text), **values))
    return [" ".join(map(str, row)) for row in rows]


FULL_SCANS = {
    "sqlite": re.compile(r"SCAN (ksana_)?\w+$"),
    # What was set for queues may be so little that it is read faster without its key.
    "postgres": re.compile(r"Seq Scan on ksana_(?!queues)"),
    "mysql": re.compile(r" ALL "),
    "mariadb": re.compile(r" ALL "),
}


def is_full_scan(database: Database, step: str) -> bool:
    return FULL_SCANS[database.dialect.name].search(step) is not None


of_sql = pytest.mark.parametrize("make_store", SQL_STORES, indirect=True)


@pytest.fixture
async def filled(store: Store) -> Database:
    assert isinstance(store, SqlStore)
    await fill(store._database)
    return store._database


@of_sql
async def test_every_hot_statement_uses_its_index(filled: Database) -> None:
    """C-59, C-68, S-1, S-36: due tasks, runs by slot, by state, by next retry and by token are found without a scan,
    and so are due items, in an index of those that are queued by their due instant."""
    # One test: to fill a table takes longer than to look at all the plans.
    assert await without_their_index(filled) == []
    assert await put_in_order_afterwards(filled) == []
    assert await searches_without_their_index(filled) == []
    if filled.dialect.name in ("sqlite", "postgres"):
        await runs_are_ended_by_their_key(filled)
    if filled.changes_at_once:
        await items_are_pulled_by_their_order(filled)


async def without_their_index(filled: Database) -> list[Any]:
    wrong = []
    for name, values, index in PLANS:
        steps = await plan(filled, named(name), values)
        index = INSTEAD.get(filled.dialect.name, {}).get(index, index)
        if index not in " ".join(steps) or any(is_full_scan(filled, step) for step in steps):
            wrong.append((name, steps))
    return wrong


class Asked:
    """A transaction that notes what it is asked for."""

    def __init__(self, tx: Tx) -> None:
        self._tx = tx
        self.asked: list[tuple[Statement, dict[str, Any]]] = []

    async def rows(self, statement: Statement, /, **values: Any) -> list[Any]:
        self.asked.append((statement, values))
        return await self._tx.rows(statement, **values)

    async def run(self, statement: Statement, /, **values: Any) -> int:
        self.asked.append((statement, values))
        return await self._tx.run(statement, **values)


async def searches_without_their_index(filled: Database) -> list[Any]:
    """Searches are put together as they come."""

    async def search_for(tx: Tx) -> list[tuple[Statement, dict[str, Any]]]:
        asked: Any = Asked(tx)
        for said in ({}, {"states": frozenset({State.RUNNING}), "queue": "@mail"}, {"before_id": 9_000}):
            await search.find_runs(asked, RunQuery(subject="memory/70", **said))
        return list(asked.asked)

    plans = [await plan(filled, *asked) for asked in await filled.read(search_for)]
    return [steps for steps in plans if "ksana_runs_subject" not in " ".join(steps)]


TOLD = '{"1": [0, 1, 1, 1, 1, "success", 0, null, null], "2": [0, 1, 1, 1, 1, "success", 0, null, null]}'


async def runs_are_ended_by_their_key(filled: Database) -> None:
    values = {name: value for name, value in CHANGE.items() if name not in ("due_at", "deadline_at", "began_at")}
    one = {"run_id": 1, **values}
    for statement, said in ((sql.END_RUNS, values), (sql.END_RUN, one), (sql.ENDED_AS_TOLD, {"epoch": 0})):
        steps = await plan(filled, statement, {"told": TOLD, **said})
        assert not any(is_full_scan(filled, step) for step in steps), steps


async def items_are_pulled_by_their_order(filled: Database) -> None:
    starts = {item_statements.head_start_of(priority): 0 for priority in Priority}
    said = {"queue": "@mail", "now": LATER, "limit": 100, "holder": "w", "until": 1, "at": 1, **starts}
    for statement in (item_statements.PULL_FREE_ITEMS, item_statements.PULL_FREE_ITEMS_OF_TYPES):
        steps = await plan(filled, statement, {**said, "types": ["welcome"]})
        assert sum("Index Scan using ksana_runs_ready" in step for step in steps) == len(Priority), steps
        assert not any(is_full_scan(filled, step) for step in steps), steps


async def put_in_order_afterwards(filled: Database) -> list[Any]:
    """The statements whose rows do not come from the index in their order."""
    wrong = []
    for name in (
        "DUE_RUNS",
        "DUE_ITEMS",
        "SAME_DUE_ITEMS",
        "LATER_DUE_ITEMS",
        "DUE_CURSORS",
        "NEXT_DUE",
        "NEXT_FIRE",
        "FIRST_ENDED",
        "WAITING_RUNS",
    ):
        [values] = [values for other, values, _ in PLANS if other == name]
        steps = " ".join(await plan(filled, named(name), values))
        if re.search(r"TEMP B-TREE|Sort|filesort", steps):
            wrong.append((name, steps))
    return wrong


@of_sql
async def test_a_pull_that_nothing_governs_asks_only_who_is_due(store: Store) -> None:
    assert isinstance(store, SqlStore)
    await store.enqueue([Enqueued(new_item(n, "mail", Item(), NOW, due_at=NOW)) for n in range(1, 8)])
    wanted = Pull(queue=stored_queue("mail"), now=NOW, limit=5, holder="w", until=NOW + HOUR)

    async def pull(tx: Tx) -> tuple[list[int], list[Statement]]:
        asked: Any = Asked(tx)
        pulled = await pulling.pull(asked, set(), wanted)
        return [run.id for run in pulled.runs], [statement for statement, _ in asked.asked]

    due = [item_statements.DUE_ITEMS] * len(Priority)
    assert await store._database.write(pull) == ([1, 2, 3, 4, 5], [*due, item_statements.PULL_ITEMS])
    assert await store._database.write(pull) == ([6, 7], [*due, item_statements.PULL_ITEMS])
    assert await store._database.write(pull) == ([], due)
