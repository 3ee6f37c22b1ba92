"""The clients: where the server is, with which key, and what can be asked of it."""

from __future__ import annotations

import os
import ssl
from collections.abc import Iterator
from types import TracebackType
from typing import Final, NamedTuple, TypeVar

from ksana import __version__
from ksana.client.anything import ask
from ksana.client.asking import Span, seconds
from ksana.client.blocking import BlockingWire
from ksana.client.events import Event, listened
from ksana.client.http1 import Place, checked_header, place_of
from ksana.client.jobs import Jobs
from ksana.client.looping import LoopingWire
from ksana.client.objects import Objects
from ksana.client.operations import Operations
from ksana.client.queue import Queue
from ksana.client.queues import Queues
from ksana.client.rooms import Room, Verb
from ksana.client.runs import Runs
from ksana.client.schedules import Schedules
from ksana.client.talks import Manners
from ksana.client.wires import Wire

W = TypeVar("W", bound=Wire)

URL_NAME: Final = "KSANA_URL"
KEY_NAME: Final = "KSANA_KEY"
_DEFAULT_URL: Final = "http://127.0.0.1:7100"


class _Rooms(Room[W]):
    """What a client can be asked, over either wire."""

    ask = Verb(ask)

    def __init__(self, wire: W) -> None:
        super().__init__(wire)
        self.jobs: Jobs[W] = Jobs(wire)
        self.runs: Runs[W] = Runs(wire)
        self.schedules: Schedules[W] = Schedules(wire)
        self.queue: Queue[W] = Queue(wire)
        self.queues: Queues[W] = Queues(wire)
        self.objects: Objects[W] = Objects(wire)
        self.operations: Operations[W] = Operations(wire)


class Client(_Rooms[BlockingWire]):
    """A server, for programs that block. Threads may share one.

    `url` and `key` are those of KSANA_URL and KSANA_KEY unless given. A try may take `timeout`; what may pass by itself
    is tried `retries` times more. `tls` is for servers with certificates of their own.
    """

    def __init__(
        self,
        url: str | None = None,
        key: str | None = None,
        *,
        timeout: Span | float = "30s",
        retries: int = 5,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        server = _server(url, key, timeout, retries)
        super().__init__(BlockingWire(server.place, server.manners, server.timeout, tls))

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def events(self, *topics: str) -> Iterator[list[Event]]:
        """What changes on the server, as it happens: of `run`, `job`, `queue`, `stats` and `operation`, or of all.

        Each step is what came at once, which is nothing when the connection stands and now and then to show that it
        still does. It ends when the server ends it, which it does after some minutes: look for what changed meanwhile,
        and listen again.
        """
        return listened(self._wire, topics)

    def close(self) -> None:
        """Let go of the connections."""
        self._wire.close()


class AsyncClient(_Rooms[LoopingWire]):
    """The same for programs that await: the methods have the same names, and lists are for `async for`."""

    def __init__(
        self,
        url: str | None = None,
        key: str | None = None,
        *,
        timeout: Span | float = "30s",
        retries: int = 5,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        server = _server(url, key, timeout, retries)
        super().__init__(LoopingWire(server.place, server.manners, server.timeout, tls))

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Let go of the connections."""
        await self._wire.close()


class _Server(NamedTuple):
    place: Place
    manners: Manners
    timeout: float


def _server(url: str | None, key: str | None, timeout: Span | float, retries: int) -> _Server:
    headers = {"User-Agent": f"ksana-client/{__version__}", "Accept": "application/json"}
    if key := (key or os.environ.get(KEY_NAME, "")).strip():
        headers["Authorization"] = f"Bearer {checked_header(key, 'key')}"
    place = place_of(url or os.environ.get(URL_NAME, "").strip() or _DEFAULT_URL)
    return _Server(place, Manners(headers=headers, retries=retries), seconds(timeout, "timeout"))
