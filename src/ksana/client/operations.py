"""Operations, which do the same to many jobs or runs on the server: each call once, as data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, Final, Literal, TypeVar
from urllib.parse import quote

import msgspec

from ksana.client.asking import Instant, later, written
from ksana.client.calls import Call, Repeat, json_body
from ksana.client.results import Operation
from ksana.client.rooms import Room, Verb
from ksana.client.wires import Wire

W = TypeVar("W", bound=Wire)

Action = Literal["pause", "resume", "run", "delete", "tag", "cancel", "retry", "redrive", "purge"]
OperationRef = str | Operation

_PATH: Final = "/api/v2/operations"
_read: Final = msgspec.json.Decoder(Operation).decode


def begin(
    action: Action,
    *,
    ids: Sequence[int] | None = None,
    filter: Mapping[str, Any] | None = None,
    tags: Sequence[str] | None = None,
    remove_tags: Sequence[str] | None = None,
    until: Instant | timedelta | None = None,
    reason: str = "",
    rate: float | None = None,
    dry_run: bool = False,
) -> Call[Operation]:
    """Do something to many jobs or runs: to these `ids`, or to all that a `filter` finds, `rate` of them a second. A
    pause may be `until` an instant. With `dry_run` nothing is done, and the answer has the `total` and a `sample`."""
    fields = {
        "action": action,
        "ids": None if ids is None else list(ids),
        "filter": None if filter is None else written(filter),
        "tags": None if tags is None else list(tags),
        "remove_tags": None if remove_tags is None else list(remove_tags),
        "until": later(until),
        "reason": reason or None,
        "rate": rate,
        "dry_run": dry_run or None,
    }
    return Call(method="POST", path=_PATH, decode=_read, body=json_body(fields), repeat=Repeat.IF_NOT_DONE)


def get(operation: OperationRef) -> Call[Operation]:
    """An operation by its id, as far as it is now."""
    return Call(method="GET", path=_one(operation), decode=_read)


def cancel(operation: OperationRef) -> Call[Operation]:
    """Do it to no more of them. What was done stays done."""
    return Call(method="POST", path=f"{_one(operation)}/cancel", decode=_read)


class Operations(Room[W]):
    """What is done to many at once. The server that was asked does it, and it ends with that server."""

    begin = Verb(begin)
    get = Verb(get)
    cancel = Verb(cancel)


def _one(operation: OperationRef) -> str:
    id = operation if isinstance(operation, str) else operation.id
    return f"{_PATH}/{quote(id or '', safe='')}"
