"""Items of the queue: runs without a job that wait for a worker to pull them. What an item carries is kept as the run's
input; who holds it, and until when, in the run itself."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, NamedTuple

import msgspec

from ksana.domain.errors import InvalidState, StaleLease
from ksana.domain.idempotency import IdempotencyRecord
from ksana.domain.moves import Kept, Move, advance
from ksana.domain.policies import Priority
from ksana.domain.runs import Run, Trigger
from ksana.domain.states import Event, Reason, State

KIND = "item"
"""The kind of these runs, and of no others."""

QUEUE = "queue"
"""The type of the steps of chains that make an item, and the surface of items that are made otherwise."""

SCOPE = "queue"
"""The scope of records that keep an item from being enqueued twice. They are never forgotten."""

DEFAULT_LEASE = timedelta(minutes=15)
DEFAULT_MAX_ATTEMPTS = 3

GATE_BLOCKED = "gate_blocked"
"""The error of an item whose object is held back by its gates."""

GATE_PATIENCE = timedelta(hours=1)
"""How long an item may be due and held back before somebody is told."""

_KEY_MARK = "#"
_MARK = "@"
QUEUES = ("@", "A")
"""Between which texts, the first included, the stored names of pulled queues lie."""


def stored_queue(name: str) -> str:
    """A pulled queue as it is stored. Workers of ours that run jobs of a queue called the same do not see it."""
    return f"{_MARK}{name}"


def shown_queue(queue: str) -> str:
    """The name of a queue as people know it."""
    return queue.removeprefix(_MARK)


def stored_key(queue: str, key: str) -> str:
    """A key as it is stored: each queue has its own. A queue whose name has no colon shares none with another."""
    return f"{queue}:{key}"


def subject_of_key(key: str) -> str:
    """What an item is about whose sender gave it a key: no object is called like this."""
    return f"{_KEY_MARK}{key}"


def key_of_subject(subject: str | None) -> str | None:
    """The key an item's sender gave it; None if the item is about an object, or about nothing in particular."""
    return None if subject is None or not subject.startswith(_KEY_MARK) else subject.removeprefix(_KEY_MARK)


def is_about_object(run: Run) -> bool:
    return run.subject is not None and not run.subject.startswith(_KEY_MARK)


class Item(msgspec.Struct, frozen=True, omit_defaults=True):
    """What an item carries: anything for the worker, how often it may fail, and what a surface keeps with it."""

    payload: Any = None
    max_attempts: int = DEFAULT_MAX_ATTEMPTS
    extras: dict[str, Any] = {}


class Report(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the worker last told of an item, kept as the checkpoint of its run: how far it has come, or with its end
    which audit event goes with it and when the object it is about wants to be seen to next."""

    progress: Any = None
    audit_event_id: str | None = None
    next_action_at: datetime | None = None

    @property
    def is_about_object(self) -> bool:
        return self.audit_event_id is not None or self.next_action_at is not None


class Rates(NamedTuple):
    """Shares from 0 to 1: of items that are over, those that succeeded; of all tries, those that led to another."""

    success: float
    retry: float


class Enqueued(msgspec.Struct, frozen=True):
    """A new item's run, and the record that keeps it from being enqueued twice."""

    run: Run
    record: IdempotencyRecord | None = None


class NewItem(msgspec.Struct, frozen=True, kw_only=True):
    """An item somebody wants enqueued. One with a `key` that was ever used in its queue stands for the one that used
    it."""

    queue: str
    item: Item
    due_at: datetime | None = None
    priority: Priority = Priority.NORMAL
    surface: str = QUEUE
    type: str | None = None
    key: str | None = None
    subject: str | None = None


class PullOrder(StrEnum):
    """Who is handed out first. By age, a priority counts like a head start of some minutes: nobody waits for ever."""

    DUE = "due"
    AGE = "age"


HEAD_STARTS = {
    Priority.HIGH: timedelta(minutes=10),
    Priority.NORMAL: timedelta(0),
    Priority.LOW: timedelta(minutes=-10),
}


class Pull(msgspec.Struct, frozen=True, kw_only=True):
    """A worker's wish for items: at most `limit` of a queue that are due at `now`, of these types or of any, held until
    `until`. `now` may be the clock of the worker; `at` is ours, if that is another."""

    queue: str
    now: datetime
    limit: int
    holder: str
    until: datetime
    types: tuple[str, ...] = ()
    order: PullOrder = PullOrder.DUE
    at: datetime | None = None

    @property
    def begun_at(self) -> datetime:
        """When the work on what is handed out begins."""
        return self.at or self.now


def pull_key(order: PullOrder, due_at: datetime, priority: Priority, id: int) -> tuple[datetime, int, int]:
    """Sorts what is due into the order in which it is handed out."""
    if order is PullOrder.AGE:
        return (due_at - HEAD_STARTS[priority], -priority, id)
    return (due_at, -priority, id)


_encode = msgspec.json.Encoder().encode
_decoder = msgspec.json.Decoder(Item)
_report_decoder = msgspec.json.Decoder(Report)


def item_of(run: Run) -> Item:
    return _decoder.decode(run.input or b"{}")


def report_of(kept: Kept | None) -> Report:
    """What was last told of an item."""
    return _report_decoder.decode((kept and kept.checkpoint) or b"{}")


def new_item(
    id: int,
    queue: str,
    item: Item,
    now: datetime,
    *,
    due_at: datetime,
    priority: Priority = Priority.NORMAL,
    surface: str = QUEUE,
    type: str | None = None,
    parent: Run | None = None,
    subject: str | None = None,
) -> Run:
    """A fresh item, ready to be pulled once it is due."""
    return Run(
        id=id,
        surface=surface,
        kind=KIND,
        queue=stored_queue(queue),
        trigger=Trigger.ENQUEUE if parent is None else Trigger.CHAIN,
        priority=priority,
        due_at=due_at,
        created_at=now,
        parent_id=None if parent is None else parent.id,
        step=type,
        input=_encode(item),
        subject=subject,
    )


def lease_token(run: Run) -> str:
    """What a worker shows to prove that it is the one that holds the item: it changes with every hand-out."""
    return f"{run.id}.{run.attempt}"


def refuse_stale(run: Run, token: str | None) -> None:
    """StaleLease if the one who shows this token no longer holds the item, InvalidState if nobody does."""
    if token is not None and (token != lease_token(run) or run.state is not State.RUNNING):
        raise StaleLease(f"the lease {token} is over; the item is {run.state} and may be somebody else's now")
    if run.state is not State.RUNNING:
        raise InvalidState(f"the item is {run.state}, not held by a worker")


def is_acked(run: Run, token: str | None) -> bool:
    """Whether the worker says what it has said before: the answer got lost, or it asks twice."""
    return run.state is State.SUCCESS and token in (None, lease_token(run))


def acked(run: Run, now: datetime, artifact: bytes | None = None, report: Report | None = None) -> Move:
    """The worker has done it."""
    return Move(run.epoch, advance(run, Event.SUCCEED, now), artifact=artifact, checkpoint=_told(report))


def failed(
    run: Run,
    now: datetime,
    error: str,
    *,
    delay: timedelta = timedelta(0),
    is_final: bool = False,
    report: Report | None = None,
) -> Move:
    """The worker could not do it: it comes due again, is given up as a dead letter, or ends if no retry makes sense."""
    told = _told(report)
    if is_final or run.failures + 1 >= item_of(run).max_attempts:
        return Move(run.epoch, advance(run, Event.FAIL if is_final else Event.BURY, now, error=error), checkpoint=told)
    later = run.due_at + delay
    moved = advance(run, Event.RETRY, now, due_at=later if later > now else now + delay, error=error)
    return Move(run.epoch, moved, checkpoint=told)


def lapsed(run: Run, now: datetime) -> Move:
    """The worker was not heard of in time, which counts as a failure."""
    error = f"{run.holder or 'the worker'} did not answer before its lease ended"
    event = Event.BURY if run.failures + 1 >= item_of(run).max_attempts else Event.RETRY
    return Move(run.epoch, advance(run, event, now, due_at=now, reason=Reason.LEASE_LAPSED, error=error))


def released(run: Run, now: datetime) -> Move:
    """The worker gives it back untouched."""
    moved = advance(run, Event.RECLAIM, now, due_at=run.due_at, reason=Reason.RELEASED, error=run.error)
    return Move(run.epoch, msgspec.structs.replace(moved, reclaims=run.reclaims))


def extended(run: Run, until: datetime, report: Report | None = None) -> Move:
    """The worker needs longer."""
    moved = msgspec.structs.replace(run, epoch=run.epoch + 1, deadline_at=until)
    return Move(run.epoch, moved, checkpoint=_told(report))


def redriven(run: Run, now: datetime, due_at: datetime | None = None, item: Item | None = None) -> Move:
    """A dead letter, or one that failed, is put back with all its attempts before it; with another `item`, that is what
    it carries from now on."""
    moved = advance(run, Event.RERUN, now, due_at=due_at or now, reason=Reason.OPERATOR, error=run.error)
    if item is None:
        return Move(run.epoch, moved)
    input = _encode(item)
    return Move(run.epoch, msgspec.structs.replace(moved, input=input), input=input)


def refused(run: Run, now: datetime, error: str) -> Move:
    """It must never be handed out again."""
    return Move(run.epoch, advance(run, Event.REFUSE, now, reason=Reason.BUDGET, error=error))


def held_back(run: Run, now: datetime) -> Move | None:
    """A gate keeps it in the queue: that is said of it once, and once more when it has been due for long."""
    reason = Reason.GATE if now - run.due_at >= GATE_PATIENCE else None
    if run.error == GATE_BLOCKED and (run.reason is Reason.GATE or reason is None):
        return None
    return Move(run.epoch, msgspec.structs.replace(run, epoch=run.epoch + 1, reason=reason, error=GATE_BLOCKED))


def _told(report: Report | None) -> bytes | None:
    return None if report is None else _encode(report)


def pulled(run: Run, pull: Pull) -> Run:
    """The run as it is handed out."""
    return advance(run, Event.CLAIM, pull.begun_at, deadline_at=pull.until, holder=pull.holder, error=run.error)


def first_of(runs: Sequence[Run], pull: Pull) -> list[Run]:
    """Which of the due items are handed out."""
    ordered = sorted(runs, key=lambda run: pull_key(pull.order, run.due_at, run.priority, run.id))
    return ordered[: pull.limit]
