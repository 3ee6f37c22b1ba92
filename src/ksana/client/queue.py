"""The queue that workers pull from: each call once, as data."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final, Literal, TypeVar
from urllib.parse import quote

import msgspec

from ksana.client.asking import Instant, Span, key_header, seconds, written
from ksana.client.calls import Call, Repeat, json_body
from ksana.client.rooms import Room, Verb
from ksana.client.wires import Wire

W = TypeVar("W", bound=Wire)

_PATH: Final = "/scheduler/jobs"


class Item(msgspec.Struct, frozen=True, kw_only=True):
    """An item, as it stood when the server answered. One that was pulled has a `lease_token`, which goes back with
    whatever is said of it, so that a worker who has lost it is told so."""

    job_id: str
    queue: str
    type: str | None
    object_type: str | None
    object_id: str | None
    action: str | None
    payload: Any
    run_at: datetime
    priority: Literal["low", "medium", "high"]
    attempt: int
    max_attempts: int
    idempotency_key: str | None
    status: Literal["queued", "running", "succeeded", "failed", "dead_letter"]
    last_error: str | None
    worker_id: str | None = None
    lease_until: datetime | None = None
    lease_token: str | None = None
    progress: Any = None
    output: Any = None
    deduplicated: bool = False


class _Pulled(msgspec.Struct):
    jobs: list[Item]


ItemRef = str | Item

_read: Final = msgspec.json.Decoder(Item).decode
_read_pulled: Final = msgspec.json.Decoder(_Pulled).decode


def enqueue(
    queue: str,
    payload: Any = None,
    *,
    type: str | None = None,
    run_at: Instant | None = None,
    delay: Span | float | None = None,
    priority: Literal["low", "medium", "high"] = "medium",
    max_attempts: int = 3,
    idempotency_key: str | None = None,
) -> Call[Item]:
    """Put something into a queue, due now, at `run_at` or after `delay`. What has a key is there once."""
    fields = {
        "queue": queue,
        "payload": payload,
        "type": type,
        "run_at": written(run_at),
        "delay_sec": None if delay is None else seconds(delay, "delay"),
        "priority": priority,
        "max_attempts": max_attempts,
    }
    return Call(method="POST", path=_PATH, decode=_read, body=json_body(fields), headers=key_header(idempotency_key))


def enqueue_action(
    object_type: Literal["memory", "experience", "cognition"],
    object_id: str,
    action: Literal["verify", "revalidate", "decay", "archive", "reinstate-check"],
    run_at: Instant,
    *,
    payload: Any = None,
    priority: Literal["low", "medium", "high"] = "medium",
    max_attempts: int = 3,
    idempotency_key: str | None = None,
) -> Call[Item]:
    """Have something done to an object. The same action at the same time is there once."""
    fields = {
        "object_type": object_type,
        "object_id": object_id,
        "action": action,
        "run_at": written(run_at),
        "payload": payload,
        "priority": priority,
        "max_attempts": max_attempts,
        "idempotency_key": idempotency_key,
    }
    return Call(method="POST", path=_PATH, decode=_read, body=json_body(fields))


def pull(
    queue: str,
    worker: str,
    *,
    limit: int = 100,
    lease: Span | float | None = None,
    wait: Span | float = 0,
    types: Sequence[str] | None = None,
    order: Literal["due", "priority"] = "due",
) -> Call[list[Item]]:
    """What is due, for this worker alone until `lease` is over; with `wait`, wait so long for something to come due."""
    waited = seconds(wait, "wait")
    fields = {
        "queue": queue,
        "worker_id": worker,
        "limit": limit,
        "lease_sec": None if lease is None else round(seconds(lease, "lease")),
        "wait_sec": waited,
        "types": None if types is None else list(types),
        "order": order,
    }
    # What was handed out in an answer that got lost stays handed out; more of it would only make that worse.
    return Call(
        method="POST",
        path=f"{_PATH}/pull",
        decode=lambda data: _read_pulled(data).jobs,
        body=json_body(fields),
        repeat=Repeat.IF_NOT_DONE,
        held_back=waited,
    )


def get(item: ItemRef) -> Call[Item]:
    """An item by its id, with what workers told of it."""
    return Call(method="GET", path=_one(item), decode=_read)


def ack(item: ItemRef, *, output: Any = msgspec.UNSET, next_action_at: Instant | None = None) -> Call[Item]:
    """It is done; `output` is handed on."""
    fields = {"output": output, "next_action_at": written(next_action_at)}
    said = {name: value for name, value in fields.items() if value is not msgspec.UNSET}
    if output is None:
        said["output"] = msgspec.Raw(b"null")
    return _told(item, "ack", said, Repeat.ALWAYS)


def fail(item: ItemRef, error: str, *, retry_after: Span | float = 0, retryable: bool = True) -> Call[Item]:
    """It could not be done: it comes due again after `retry_after`, or is a dead letter once its attempts are used up,
    or at once if it is not `retryable`."""
    delay = seconds(retry_after, "retry_after")
    fields = {"error": error, "retry_delay_sec": delay, "retryable": retryable}
    return _told(item, "fail", fields, Repeat.IF_NOT_DONE)


def heartbeat(item: ItemRef, *, lease: Span | float | None = None, progress: Any = None) -> Call[Item]:
    """The worker is still at it and holds it for `lease` from now on."""
    held = None if lease is None else round(seconds(lease, "lease"))
    return _told(item, "heartbeat", {"lease_sec": held, "progress": progress}, Repeat.ALWAYS)


def release(item: ItemRef) -> Call[Item]:
    """The worker gives it back untouched."""
    return _told(item, "release", {}, Repeat.IF_NOT_DONE)


class Queue(Room[W]):
    """Items for workers."""

    enqueue = Verb(enqueue)
    enqueue_action = Verb(enqueue_action)
    pull = Verb(pull)
    get = Verb(get)
    ack = Verb(ack)
    fail = Verb(fail)
    heartbeat = Verb(heartbeat)
    release = Verb(release)


def _one(item: ItemRef) -> str:
    return f"{_PATH}/{quote(item if isinstance(item, str) else item.job_id, safe='')}"


def _told(item: ItemRef, what: str, fields: dict[str, Any], repeat: Repeat) -> Call[Item]:
    token = None if isinstance(item, str) else item.lease_token
    body = json_body({**fields, "lease_token": token})
    return Call(method="POST", path=f"{_one(item)}/{what}", decode=_read, body=body, repeat=repeat)
