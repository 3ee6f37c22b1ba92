"""A little of everything a store can hold, and ways to put it in and to get it all out."""

from datetime import timedelta
from typing import Any

import msgspec

from ksana.domain.alerts import Alert, AlertState
from ksana.domain.archive import Section, Standing, key_of
from ksana.domain.audit import AuditEntry
from ksana.domain.callbacks import CallbackRecord, CallbackStatus, Progress
from ksana.domain.idempotency import IdempotencyRecord
from ksana.domain.items import Item, new_item, stored_queue
from ksana.domain.jobs import Job, TargetSpec
from ksana.domain.keys import Scope, StoredKey
from ksana.domain.limits import QueueSettings, Rate
from ksana.domain.moves import Kept
from ksana.domain.objects import Epistemic, Gate, GovernedObject, Risk, UnknownType
from ksana.domain.outcomes import Verdict
from ksana.domain.plans import new_child
from ksana.domain.policies import Priority
from ksana.domain.ports import Store
from ksana.domain.queries import Minute
from ksana.domain.runs import Attempt, Run, Trigger
from ksana.domain.schedules import CronSchedule
from ksana.domain.states import Reason, State
from tests.stores.builders import (
    HOUR,
    MINUTE,
    NOW,
    SECOND,
    a_gap,
    a_job,
    a_planned_job,
    a_run,
    an_attempt,
    an_exchange,
    one_at_a_time,
)
from tests.stores.families import a_chain_run, a_dag

Everything = dict[Section, list[Any]]

CARRIED = [section for section in Section if section is not Section.STANDING]
LARGE = bytes(range(256)) * 4096
NOBODY = 77
"""A node that is in no store."""


def everything() -> Everything:
    """Things of every section; one that is new is given some here."""
    things: Everything = {
        Section.KEYS: [
            StoredKey("a" * 16, "CI 🚀", b"\0\xff'\\%" * 6, frozenset({Scope.JOB_READ, Scope.RUN_READ}), NOW),
            StoredKey("b" * 16, "old", b"x" * 32, frozenset(Scope), NOW, revoked_at=NOW + HOUR),
        ],
        Section.JOBS: _jobs(),
        Section.RUNS: _runs(),
        Section.ATTEMPTS: _attempts(),
        Section.CALLBACKS: [
            CallbackRecord(id=7, run_id=42, received_at=NOW, status=CallbackStatus.RECEIVED, headers={"a": "ü"}),
            CallbackRecord(
                id=8, run_id=1, received_at=NOW, status=CallbackStatus.IGNORED, note="zu spät ☕", body=LARGE
            ),
            CallbackRecord(id=9, run_id=42, received_at=NOW + SECOND, status=CallbackStatus.RECEIVED),
        ],
        Section.PROGRESS: [
            Progress(run_id=1, attempt=1, fraction=None, message="läuft 🚀", reported_at=NOW),
            Progress(run_id=42, attempt=1, fraction=0.25, message="", reported_at=NOW, limit_at=NOW + HOUR),
        ],
        Section.KEPT: [
            Kept(run_id=9, artifact=b""),
            Kept(run_id=21, artifact=LARGE, checkpoint=b"\0'%\\\xff"),
            Kept(run_id=22, checkpoint="läuft 🚀".encode()),
        ],
        Section.ALERTS: [
            Alert(run_id=9, epoch=9, hook="a ☕", body=b'{"a": 1}', created_at=NOW, due_at=NOW),
            Alert(run_id=9, epoch=9, hook="b", body=LARGE, created_at=NOW, due_at=NOW + HOUR, attempts=3, error="ä"),
            Alert(run_id=9, epoch=12, hook="a ☕", body=b"", created_at=NOW, due_at=None, state=AlertState.FAILED),
            Alert(
                run_id=10,
                epoch=1,
                hook="b",
                body=b"",
                created_at=NOW,
                due_at=None,
                state=AlertState.DELIVERED,
                ended_at=NOW,
            ),
        ],
        Section.GAPS: [
            a_gap(1, NOW - HOUR, 7),
            a_gap(1, NOW, 3, Reason.PAUSED),
            a_gap(1, NOW, 4),
            a_gap(2, NOW - 5 * HOUR),
            a_gap(12, NOW),
        ],
        Section.MINUTES: [
            Minute(minute_at=NOW - at * MINUTE, kind=kind, state=state, count=at, busy_ms=2**40, late_ms=0)
            for at in (1, 2, 600)
            for kind in ("http", "noop")
            for state in (State.FAILED, State.SUCCESS)
        ],
        Section.RECORDS: [
            IdempotencyRecord("v2", "naïve ☕", b"\0\1", 201, b'{"id": 1}', NOW),
            IdempotencyRecord("v2", "Z", b"", 200, LARGE, NOW + HOUR),
            IdempotencyRecord("v2:key", "\U0001f680", b"f", 202, b"", NOW),
            IdempotencyRecord("jobs", "\uffee", b"f", 202, b"", NOW),
        ],
        Section.OBJECTS: _objects(),
        Section.QUEUES: [
            QueueSettings(queue=stored_queue("mail"), is_paused=True, reason="zu spät ☕", updated_at=NOW),
            QueueSettings(
                queue=stored_queue("später"),
                version=7,
                concurrency=3,
                rate=Rate(100, timedelta(seconds=1.5)),
                key_concurrency=1,
                key_rate=Rate(2**31, HOUR),
                updated_at=NOW + HOUR,
            ),
        ],
        Section.AUDIT: [
            AuditEntry(id=2, at=NOW + HOUR, actor="CI 🚀", action="create", subject="job", subject_id="1", after=b"{}"),
            AuditEntry(
                id=11,
                at=NOW,
                actor="loopback",
                action="change",
                subject="object",
                subject_id="memory/1",
                reason="läuft ☕",
                before=LARGE,
                after=b'{"a": "\xc3\xa4"}',
                evidence="aud_1",
                request_id="r" * 26,
            ),
            AuditEntry(id=1_000_000_000_000, at=NOW, actor="", action="delete", subject="job", subject_id="1"),
        ],
    }
    return {section: sorted(items, key=lambda item: key_of(section, item)) for section, items in things.items()}


def _jobs() -> list[Job]:
    return [
        a_planned_job(1, NOW + HOUR, name="emoji 🚀 naïve", tags=("a", "b ☕"), version=7),
        a_job(2, name="deleted", ref="again", tags=("a",), deleted_at=NOW, updated_at=NOW, enabled=False),
        a_job(3, name="its name again", ref="again", overlap=one_at_a_time(2)),
        a_job(
            12,
            surface="tasks",
            ref="again",
            enabled=False,
            paused_at=NOW - SECOND,
            target=TargetSpec("http", {"url": "http://x/{{run_id}}", "body": {"deep": [1, None, "ü"]}, "n": 2.5}),
            schedule=CronSchedule("0 30 9 * * 1-5", "Asia/Shanghai", jitter=SECOND),
            awaits_callback=True,
        ),
        a_planned_job(100, NOW - MINUTE, next_fire_at=NOW - MINUTE + timedelta(microseconds=1)),
    ]


def _runs() -> list[Run]:
    """A run in every state, and some with all there can be about one."""
    each = [
        a_run(
            number,
            state=state,
            epoch=number,
            ended_at=NOW if state.is_final else None,
            node_id=NOBODY if state is State.RUNNING else None,
        )
        for number, state in enumerate(State, 1)
    ]
    return [
        *each,
        *_family(),
        a_run(40, 3, state=State.WAITING, reason=Reason.SLOT, slot_at=NOW, trigger=Trigger.CATCH_UP),
        a_run(
            41, 3, state=State.RETRYING, due_at=NOW + HOUR, failures=2, reclaims=1, attempt=3, error="läuft 🚀 nicht"
        ),
        a_run(
            42,
            12,
            state=State.CALLBACK_PENDING,
            deadline_at=NOW + HOUR,
            callback_token="t" * 43,
            started_at=NOW,
            parent_id=41,
            step="extract 🚀",
            input=LARGE,
            priority=Priority.HIGH,
            queue="später",
        ),
        *_items(),
        a_run(1_000_000_000_000, 100, slot_at=NOW - HOUR),
    ]


def _objects() -> list[GovernedObject]:
    return [
        GovernedObject(type="memory", id="1", created_at=NOW, updated_at=NOW),
        GovernedObject(
            type="memory",
            id="10/ä 🚀",
            version=2**40,
            risk=Risk.HIGH,
            epistemic=Epistemic.UNCERTAIN,
            unknown=UnknownType.ONTIC,
            budget=0,
            verified=5,
            cap=1,
            tried=7,
            gates={"persona": Gate.LIMIT, "cognition": Gate.PASS},
            next_action_at=NOW + HOUR,
            evidence="aud_1",
            attributes={"deep": [1, None, "ü", 2.5], "empty": {}},
            created_at=NOW,
            updated_at=NOW + SECOND,
        ),
        # As texts with what is between them, these two would be in another order.
        GovernedObject(type="memory-old", id="1", created_at=NOW, updated_at=NOW),
    ]


def _items() -> list[Run]:
    """Items about something: one waits, one is held."""
    ready = new_item(30, "mail", Item({"n": 1}), NOW, due_at=NOW, type="memory.verify", subject="memory/1")
    held = new_item(31, "mail", Item(), NOW, due_at=NOW, subject="Schlüssel ☕")
    out = {"state": State.RUNNING, "epoch": 1, "attempt": 1, "holder": "w 1", "deadline_at": NOW + HOUR}
    return [ready, msgspec.structs.replace(held, **out)]


def _family() -> list[Run]:
    """A chain of which one step is done, one is under way and one waits."""
    parent = a_chain_run(20, 100, a_dag("a", "b", "c<b"), state=State.RUNNING, reason=Reason.CHILDREN, epoch=2)
    [a, b, c] = [new_child(parent, 21 + n, step, NOW, kind="noop") for n, step in enumerate(("a", "b", "c"))]
    done = msgspec.structs.replace(a, state=State.SUCCESS, reason=None, epoch=3, attempt=1, ended_at=NOW)
    going = msgspec.structs.replace(b, state=State.RUNNING, reason=None, epoch=2, attempt=1, node_id=NOBODY)
    return [parent, done, going, c]


def _attempts() -> list[Attempt]:
    run = a_run(41, epoch=5, attempt=2)
    wire = an_exchange(
        request_headers={"X-Ä": "ü"}, request_body=LARGE, response_body=b"\0'\\\xff", response_headers={"A": "b"}
    )
    return [
        an_attempt(a_run(1, epoch=1)),
        an_attempt(run, verdict=Verdict.FAIL, error="kaputt ☠", code=500, exchange=wire, node_id=NOBODY),
        an_attempt(msgspec.structs.replace(run, epoch=30), timed_out=True, verdict=Verdict.RETRY, result=b"[1]"),
        an_attempt(a_run(1_000_000_000_000, epoch=2**40), exchange=an_exchange(truncated=True)),
    ]


async def fill(store: Store) -> Everything:
    """Have everything in the store, and say what that is."""
    things = everything()
    for section, items in things.items():
        await store.restore(section, items)
    return things


async def contents(store: Store, limit: int = 1000) -> Everything:
    """All that a store holds, section by section, read in pages of this size."""
    return {section: await read(store, section, limit) for section in CARRIED}


async def read(store: Store, section: Section, limit: int = 1000, after: str | None = None) -> list[Any]:
    found: list[Any] = []
    while True:
        page = await store.export(section, after, limit)
        assert len(page.items) <= limit
        found += page.items
        if page.after is None:
            return found
        assert page.items, "a page that is not the last holds something"
        after = page.after


async def standing(store: Store) -> Standing:
    [found] = await read(store, Section.STANDING)
    assert isinstance(found, Standing)
    return found
