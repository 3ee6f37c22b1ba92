"""What is set for a queue: whether it is open, and how much of it may be worked on. Each call once, as data."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final
from urllib.parse import quote

import msgspec

from ksana.client.asking import Span, seconds
from ksana.client.calls import Call, Repeat, json_body

_Unset = msgspec.UnsetType

Rate = tuple[int, Span]
"""So many in so long: `(10, "1s")`."""


class QueueRate(msgspec.Struct, frozen=True):
    """At most `count` in so many seconds."""

    count: int
    per_sec: float


class QueueSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What is set for a queue; nothing yet, at version 0."""

    queue: str
    version: int
    paused: bool
    reason: str
    concurrency: int | None
    rate: QueueRate | None
    key_concurrency: int | None
    key_rate: QueueRate | None
    updated_at: datetime | None


_read: Final = msgspec.json.Decoder(QueueSettings).decode


def settings(queue: str) -> Call[QueueSettings]:
    """What is set for a queue."""
    return Call(method="GET", path=_one(queue), decode=_read)


def pause(queue: str, *, reason: str = "") -> Call[QueueSettings]:
    """Hand out nothing more of a queue; what is held may be finished, and new items are taken."""
    return Call(method="POST", path=f"{_one(queue)}/pause", decode=_read, body=json_body({"reason": reason}))


def resume(queue: str, *, reason: str = "") -> Call[QueueSettings]:
    """Hand out items of a queue again."""
    return Call(method="POST", path=f"{_one(queue)}/resume", decode=_read, body=json_body({"reason": reason}))


def limit(
    queue: str,
    *,
    concurrency: int | _Unset | None = msgspec.UNSET,
    rate: Rate | _Unset | None = msgspec.UNSET,
    key_concurrency: int | _Unset | None = msgspec.UNSET,
    key_rate: Rate | _Unset | None = msgspec.UNSET,
    reason: str = "",
    version: int | None = None,
) -> Call[QueueSettings]:
    """Limit how many items are held at once and handed out in a while, in all and of each key. What is not said stays,
    None lifts a limit. With the `version` it was read in, Conflict if somebody changed it meanwhile."""
    said: dict[str, Any] = {"concurrency": concurrency, "key_concurrency": key_concurrency}
    said |= {"rate": _rate(rate, "rate"), "key_rate": _rate(key_rate, "key_rate"), "reason": reason}
    fields = {name: value for name, value in said.items() if value is not msgspec.UNSET}
    body = msgspec.json.encode(fields | ({} if version is None else {"version": version}))
    # The second time it would be the version that the first has made.
    repeat = Repeat.ALWAYS if version is None else Repeat.IF_NOT_DONE
    return Call(method="PUT", path=_one(queue), decode=_read, body=body, repeat=repeat)


def _rate(said: Rate | _Unset | None, field: str) -> Any:
    if said is None or said is msgspec.UNSET:
        return said
    count, per = said
    return {"count": count, "per_sec": seconds(per, field)}


def _one(queue: str) -> str:
    return f"/scheduler/queues/{quote(queue, safe='')}"
