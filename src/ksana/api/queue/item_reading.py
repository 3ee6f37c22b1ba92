"""From what is said of a new item to what the engine enqueues. Everything that is wrong is said at once."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, Final

from ksana.api.queue.item_shapes import NewJob
from ksana.api.queue.words import GOVERNANCE, PRIORITIES, SURFACE, Action, key_of
from ksana.domain.errors import InvalidArgument, Problem
from ksana.domain.items import Item, NewItem, item_of, shown_queue, subject_of_key
from ksana.domain.objects import subject_of
from ksana.domain.runs import Run
from ksana.domain.times import parse_instant

END_OF_TIME: Final = datetime(9000, 1, 1, tzinfo=UTC)
"""Before when items must be due: behind it there is room for every retry there may be."""
TOO_LATE: Final = f"must lie before the year {END_OF_TIME.year}"
_OBJECT: Final = ("object_type", "object_id", "action")
_REQUIRED: Final = "is required"


def read_new_job(body: NewJob, now: datetime, header_key: str | None = None) -> NewItem:
    """The item a request asks for. `header_key` is its Idempotency-Key, if it has one."""
    problems: list[Problem] = []
    is_about_object = not (body.object_type is None and body.object_id is None and body.action is None)
    due_at = _due_at(body, now, problems)
    _check_object(body, problems) if is_about_object else _check_free(body, problems)
    if problems:
        raise InvalidArgument(problems)
    key = body.idempotency_key
    extras: dict[str, Any] = {}
    if is_about_object:
        extras = {name: getattr(body, name) for name in _OBJECT}
        key = key or key_of(extras["object_id"], extras["action"], due_at or now)
    else:
        key = key or header_key
    if key is not None:
        extras["idempotency_key"] = key
    return NewItem(
        queue=body.queue or GOVERNANCE,
        item=Item(body.payload, body.max_attempts, extras),
        due_at=due_at,
        priority=PRIORITIES[body.priority],
        surface=SURFACE,
        subject=_subject(body),
        type=f"{body.object_type}.{body.action}" if is_about_object else body.type,
        key=key,
    )


def next_item(done: Run, action: Action, run_at: datetime) -> NewItem:
    """The item about the same object that is to come after one that is done."""
    item = item_of(done)
    type, id = item.extras["object_type"], item.extras["object_id"]
    key = key_of(id, action, run_at)
    extras = {"object_type": type, "object_id": id, "action": action, "idempotency_key": key}
    return NewItem(
        queue=shown_queue(done.queue),
        item=Item(item.payload, item.max_attempts, extras),
        due_at=run_at,
        priority=done.priority,
        surface=SURFACE,
        type=f"{type}.{action}",
        key=key,
        subject=done.subject,
    )


def _subject(body: NewJob) -> str | None:
    if body.object_type is not None and body.object_id is not None:
        return subject_of(body.object_type, body.object_id)
    return None if body.group_key is None else subject_of_key(body.group_key)


def _check_object(body: NewJob, problems: list[Problem]) -> None:
    problems += [Problem(name, _REQUIRED) for name in (*_OBJECT, "run_at") if getattr(body, name) is None]
    if body.object_id is not None and not body.object_id.isprintable():
        # Nobody could say of an object with such a name what it is like.
        problems.append(Problem("object_id", "must be of printable signs"))
    if body.delay_sec is not None:
        problems.append(Problem("delay_sec", "does not go with an object; say run_at"))
    if body.group_key is not None:
        problems.append(Problem("group_key", "does not go with an object; its items are counted by the object"))
    if body.type is not None:
        problems.append(Problem("type", "does not go with an object; it is made of object_type and action"))


def _check_free(body: NewJob, problems: list[Problem]) -> None:
    if body.queue is None:
        problems.append(Problem("queue", "is required, or else object_type, object_id, action and run_at"))
    elif body.queue == GOVERNANCE:
        problems += [Problem(name, f"is required in the queue {GOVERNANCE}") for name in _OBJECT]
    if body.run_at is not None and body.delay_sec is not None:
        problems.append(Problem("delay_sec", "does not go with run_at; say one of them"))


def _due_at(body: NewJob, now: datetime, problems: list[Problem]) -> datetime | None:
    if body.delay_sec is not None:
        return now + timedelta(seconds=body.delay_sec)
    if body.run_at is None:
        return None
    try:
        run_at = parse_instant(body.run_at, "run_at")
    except InvalidArgument as error:
        problems += error.problems
        return None
    # In whole seconds: whoever says the current second does not mean the past.
    if run_at < now.replace(microsecond=0):
        problems.append(Problem("run_at", "lies in the past; it must be now or later"))
    elif run_at >= END_OF_TIME:
        problems.append(Problem("run_at", TOO_LATE))
    return run_at
