"""The queue that workers pull from: each call once, as data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Literal, ParamSpec, TypeVar
from urllib.parse import quote

import msgspec

from ksana.client.asking import Instant, Span, key_header, seconds, written
from ksana.client.calls import Call, Repeat, json_body
from ksana.client.holding import Ways, held_by
from ksana.client.items import Action, ItemPriority, ObjectType
from ksana.client.items import Item as Item
from ksana.client.rooms import Room, Verb
from ksana.client.wires import Wire
from ksana.domain.items import DEFAULT_LEASE

P = ParamSpec("P")
W = TypeVar("W", bound=Wire)

GOVERNANCE: Final = "governance"
"""The queue of items that are about an object, unless they say another."""

_PATH: Final = "/scheduler/jobs"


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
    priority: ItemPriority = "medium",
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
    object_type: ObjectType,
    object_id: str,
    action: Action,
    run_at: Instant,
    *,
    payload: Any = None,
    priority: ItemPriority = "medium",
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


def ack(
    item: ItemRef,
    *,
    output: Any = msgspec.UNSET,
    next_action_at: Instant | None = None,
    audit_event_id: str | None = None,
    lease_token: str | None = None,
) -> Call[Item]:
    """It is done; `output` is handed on. The `lease_token` is that of the item, unless only its id is given."""
    fields = {"output": output, "next_action_at": written(next_action_at), "audit_event_id": audit_event_id}
    said = {name: value for name, value in fields.items() if value is not msgspec.UNSET}
    if output is None:
        said["output"] = msgspec.Raw(b"null")
    return _told(item, "ack", said, Repeat.ALWAYS, lease_token)


def fail(
    item: ItemRef,
    error: str,
    *,
    retry_after: Span | float = 0,
    retryable: bool = True,
    lease_token: str | None = None,
) -> Call[Item]:
    """It could not be done: it comes due again after `retry_after`, or is a dead letter once its attempts are used up,
    or at once if it is not `retryable`."""
    delay = seconds(retry_after, "retry_after")
    fields = {"error": error, "retry_delay_sec": delay, "retryable": retryable}
    return _told(item, "fail", fields, Repeat.IF_NOT_DONE, lease_token)


def heartbeat(
    item: ItemRef, *, lease: Span | float | None = None, progress: Any = None, lease_token: str | None = None
) -> Call[Item]:
    """The worker is still at it and holds it for `lease` from now on."""
    held = None if lease is None else round(seconds(lease, "lease"))
    return _told(item, "heartbeat", {"lease_sec": held, "progress": progress}, Repeat.ALWAYS, lease_token)


def release(item: ItemRef, *, lease_token: str | None = None) -> Call[Item]:
    """The worker gives it back untouched."""
    return _told(item, "release", {}, Repeat.IF_NOT_DONE, lease_token)


class _Pulling(Verb[P, list[Item]]):
    """A pull whose items can be held: they know the wire they came by."""

    def made_by(self, wire: Any, *args: Any, **kwargs: Any) -> Any:
        call = self._describe(*args, **kwargs)
        assert isinstance(call, Call)
        lease = kwargs.get("lease")
        held_for = DEFAULT_LEASE.total_seconds() if lease is None else seconds(lease, "lease")

        def decode(data: bytes) -> list[Item]:
            return [held_by(wire, item, held_for, _WAYS) for item in call.decode(data)]

        return wire.make(msgspec.structs.replace(call, decode=decode))


_WAYS: Final = Ways(ack, fail, heartbeat, release)


class Queue(Room[W]):
    """Items for workers."""

    enqueue = Verb(enqueue)
    enqueue_action = Verb(enqueue_action)
    pull = _Pulling(pull)
    get = Verb(get)
    ack = Verb(ack)
    fail = Verb(fail)
    heartbeat = Verb(heartbeat)
    release = Verb(release)


def _one(item: ItemRef) -> str:
    return f"{_PATH}/{quote(item if isinstance(item, str) else item.job_id, safe='')}"


def _told(item: ItemRef, what: str, fields: dict[str, Any], repeat: Repeat, lease_token: str | None) -> Call[Item]:
    token = lease_token if isinstance(item, str) else lease_token or item.lease_token
    body = json_body({**fields, "lease_token": token})
    return Call(method="POST", path=f"{_one(item)}/{what}", decode=_read, body=body, repeat=repeat)
