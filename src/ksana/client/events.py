"""What changes on a server, as it happens: its stream of server-sent events as values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec

from ksana.client.blocking import BlockingWire
from ksana.client.calls import Call, query_of

# Three times as long as the server is ever silent.
_SILENCE: Final = 45.0
_RESYNC: Final = "resync"


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """A change. `topic` is what of; `resync` means that some were lost and one has to look. `version` rises with every
    change of the same thing, and `patch` has the fields as they are now."""

    topic: str
    id: int | str | None = None
    version: int | None = None
    patch: Any = None


_read: Final = msgspec.json.Decoder(Event).decode


def listened(wire: BlockingWire, topics: Sequence[str]) -> Iterator[list[Event]]:
    """Changes as they come, each time all that came at once."""
    query = query_of(topics=",".join(topics))
    call = Call(method="GET", path="/api/v2/events", decode=bytes, query=query, headers={"Accept": "text/event-stream"})
    reader = EventReader()
    for piece in wire.pieces(call, _SILENCE):
        yield reader.feed(piece)


class EventReader:
    """Bytes to events, however they are cut: an event ends with an empty line."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, piece: bytes) -> list[Event]:
        *blocks, self._rest = (self._rest + piece).replace(b"\r\n", b"\n").split(b"\n\n")
        return [event for block in blocks if (event := _event(block)) is not None]


def _event(block: bytes) -> Event | None:
    """The event of a block; None for a comment, or what only tells when to come back."""
    topic, data = "", []
    for line in block.split(b"\n"):
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"event":
            topic = value.decode()
        elif name == b"data":
            data.append(value)
    if topic == _RESYNC:
        return Event(topic=_RESYNC)
    return _read(b"\n".join(data)) if data else None
