"""How items look on the wire, and what is said of new ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, TypeVar

import msgspec

from ksana.api.kit import ErrorStyle, Input, Timestamp, timestamp
from ksana.api.kit.errors import ErrorBody, body_of, status_of
from ksana.api.queue.words import (
    PRIORITY_WORDS,
    STATUS,
    Action,
    ObjectType,
    PriorityWord,
    Status,
    instant,
    job_id_of,
)
from ksana.domain.errors import KsanaError
from ksana.domain.items import DEFAULT_MAX_ATTEMPTS, key_of_subject, lease_token, report_of, shown_queue
from ksana.domain.moves import Kept
from ksana.domain.runs import Run
from ksana.domain.states import CLAIMABLE, State

V = TypeVar("V", bound="ItemView")

MOST = 1000
_YEARS = 315_360_000

Instant = Annotated[str, msgspec.Meta(description="RFC 3339, with Z or an offset", examples=["2030-01-01T00:00:00Z"])]
NewQueue = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._/-]{0,63}$", examples=["emails"])]
Queue = Annotated[str, msgspec.Meta(pattern=r"^[!-~]([ -~]{0,198}[!-~])?$", examples=["emails"])]
TypeName = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._/:-]{0,127}$", examples=["welcome"])]
Delay = Annotated[float, msgspec.Meta(ge=0, le=_YEARS, description="seconds")]
GroupKey = Annotated[str, msgspec.Meta(pattern=r"^[!-~]([ -~]{0,148}[!-~])?$", examples=["tenant-7"])]
JobId = Annotated[str, msgspec.Meta(max_length=64, examples=["job_17"])]
LeaseToken = Annotated[str, msgspec.Meta(max_length=64, description="as the pull gave it")]


class NewJob(Input, frozen=True):
    """An item: about an object (`object_type`, `object_id`, `action` and `run_at`), or anything at all for the workers
    of a `queue`, which may count the items of each `group_key` apart. The key of the first kind is made of object,
    action and `run_at` unless it is given."""

    object_type: ObjectType | None = None
    object_id: Annotated[str, msgspec.Meta(min_length=1, max_length=150)] | None = None
    action: Action | None = None
    queue: NewQueue | None = None
    type: TypeName | None = None
    payload: Any = None
    run_at: Instant | None = None
    delay_sec: Delay | None = None
    priority: PriorityWord = "medium"
    max_attempts: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 3
    idempotency_key: Annotated[str, msgspec.Meta(min_length=1, max_length=190)] | None = None
    group_key: GroupKey | None = None


class NewJobs(Input, frozen=True):
    """Items to enqueue, each as it would be sent alone."""

    jobs: Annotated[list[dict[str, Any]], msgspec.Meta(min_length=1, max_length=MOST)]


# `gc=False` on what comes by the hundred: it can hold no reference to itself, so the cycle collector need not look.


class ItemView(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """An item. `attempt` counts the times it has failed; what belongs to an object is null for an item about none."""

    job_id: str
    queue: str
    type: str | None
    object_type: str | None
    object_id: str | None
    action: str | None
    payload: Any
    run_at: str
    priority: PriorityWord
    attempt: int
    max_attempts: int
    idempotency_key: str | None
    group_key: str | None
    status: Status
    last_error: str | None
    worker_id: str | None
    """Whom it was last handed out to."""
    lease_until: Timestamp | None
    created_at: Timestamp
    started_at: Timestamp | None
    ended_at: Timestamp | None


class EnqueuedView(ItemView, frozen=True, kw_only=True, gc=False):
    """The item that stands for what was sent; `deduplicated` if it was there before."""

    deduplicated: bool


class PulledView(ItemView, frozen=True, kw_only=True, gc=False):
    """An item that is the worker's until `lease_until`; `progress` is what the worker before it left."""

    lease_token: str
    progress: Any


class ItemDetail(ItemView, frozen=True, kw_only=True, gc=False):
    """An item with what workers told of it."""

    progress: Any
    output: Any
    audit_event_id: str | None
    next_action_at: str | None


class Answered(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What one of many was answered: `status` is what it would have been alone, with the item or the error."""

    status: int
    job: ItemView | None = None
    error: ErrorBody | None = None


class AnsweredEnqueue(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The same for one that was to be enqueued."""

    status: int
    job: EnqueuedView | None = None
    error: ErrorBody | None = None


class Results(msgspec.Struct, frozen=True):
    """One answer for each that was sent, in the same order."""

    results: list[Answered]


class EnqueueResults(msgspec.Struct, frozen=True):
    results: list[AnsweredEnqueue]


def show_job(run: Run) -> ItemView:
    return _shown(ItemView, run)


def show_enqueued(run: Run, is_new: bool) -> EnqueuedView:
    return _shown(EnqueuedView, run, deduplicated=not is_new)


def show_pulled(run: Run, kept: Kept | None) -> PulledView:
    progress = None if kept is None else report_of(kept).progress
    return _shown(PulledView, run, lease_token=lease_token(run), progress=progress)


def show_detail(run: Run, kept: Kept | None) -> ItemDetail:
    report = report_of(kept)
    return _shown(
        ItemDetail,
        run,
        # How far it came tells nothing any more once it is done.
        progress=None if run.state is State.SUCCESS else report.progress,
        output=None if kept is None or kept.artifact is None else msgspec.Raw(kept.artifact),
        audit_event_id=report.audit_event_id,
        next_action_at=None if report.next_action_at is None else instant(report.next_action_at),
    )


def show_error(error: KsanaError, request_id: str) -> tuple[int, ErrorBody]:
    """What an error among many looks like."""
    return status_of(error), body_of(error, ErrorStyle.TEXT, request_id)


def show_answer(result: Run | KsanaError, request_id: str) -> Answered:
    if isinstance(result, Run):
        return Answered(status=200, job=show_job(result))
    status, error = show_error(result, request_id)
    return Answered(status=status, error=error)


class _Carried(msgspec.Struct, frozen=True, gc=False):
    """An Item whose payload is passed on as it is stored: many are shown for each that somebody looks into."""

    payload: msgspec.Raw = msgspec.Raw(b"null")
    max_attempts: int = DEFAULT_MAX_ATTEMPTS
    extras: dict[str, Any] = {}


_carried = msgspec.json.Decoder(_Carried).decode


# Called three times for each item that passes: what most items do not have is not asked for.
def _shown(view: Callable[..., V], run: Run, **more: Any) -> V:
    item = _carried(run.input or b"{}")
    extras, subject, state = item.extras, run.subject, run.state
    deadline_at, started_at, ended_at = run.deadline_at, run.started_at, run.ended_at
    return view(
        job_id=job_id_of(run.id),
        queue=shown_queue(run.queue),
        type=run.step,
        object_type=extras.get("object_type") if extras else None,
        object_id=extras.get("object_id") if extras else None,
        action=extras.get("action") if extras else None,
        payload=item.payload,
        run_at=instant(run.due_at),
        priority=PRIORITY_WORDS[run.priority],
        attempt=run.failures,
        max_attempts=item.max_attempts,
        idempotency_key=extras.get("idempotency_key") if extras else None,
        group_key=None if subject is None else key_of_subject(subject),
        status=STATUS[state],
        last_error=run.error or None,
        # Nobody holds an item that waits to be pulled again.
        worker_id=None if state in CLAIMABLE else run.holder,
        lease_until=None if deadline_at is None else timestamp(deadline_at),
        created_at=timestamp(run.created_at),
        started_at=None if started_at is None else timestamp(started_at),
        ended_at=None if ended_at is None else timestamp(ended_at),
        **more,
    )
