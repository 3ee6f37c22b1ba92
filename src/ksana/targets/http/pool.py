"""Open connections between exchanges, so that the next call to the same place need not connect again."""

from __future__ import annotations

import asyncio
import ssl
from collections import OrderedDict

import msgspec

from ksana.targets.http.deadlines import Deadlines
from ksana.targets.http.flights import Flights
from ksana.targets.http.known_heads import KnownHeads
from ksana.targets.http.limits import Limits
from ksana.targets.http.post import Post
from ksana.targets.http.wire import Connection


class Place(msgspec.Struct, frozen=True, gc=False):
    """What a connection leads to: the address is the one that was checked, the host is whose certificate it showed."""

    scheme: str
    host: str
    port: int
    address: str


class Pool:
    """Idle connections by place, the one used last first; the places used longest ago give way."""

    def __init__(self, limits: Limits) -> None:
        self.loop: asyncio.AbstractEventLoop | None = None
        """The loop of its connections, if there are any. To ask for the one that runs is a call of the system on Python
        3.11, which is too dear for every exchange."""
        self._limits = limits
        self._idle: OrderedDict[Place, list[Connection]] = OrderedDict()
        self._in_use: set[Connection] = set()
        self._deadlines = Deadlines()
        self._heads = KnownHeads()
        self._post = Post()
        self._idle_count = 0
        self._sweeper: asyncio.TimerHandle | None = None
        self._tls: Flights[None, ssl.SSLContext] = Flights()
        self._context: ssl.SSLContext | None = None

    def idle(self, place: Place) -> Connection | None:
        """A connection to this place that is unused, and open as far as this side has heard."""
        waiting = self._idle.get(place)
        while waiting:
            connection = waiting.pop()
            self._idle_count -= 1
            if connection.is_reusable:
                self._in_use.add(connection)
                return connection
            connection.abort()
        return None

    async def connect(self, place: Place) -> Connection:
        """A new connection. OSError if it does not come about; nothing has been sent then."""
        secure = place.scheme == "https"
        context = (self._context or await self._tls.join(None, self._trust)) if secure else None
        loop = self.loop = asyncio.get_running_loop()
        _, connection = await loop.create_connection(
            lambda: Connection(self._deadlines, self._heads, self._post),
            place.address,
            place.port,
            ssl=context,
            server_hostname=place.host.strip("[]").rstrip(".") if secure else None,
        )
        self._in_use.add(connection)
        return connection

    def give_back(self, place: Place, connection: Connection) -> None:
        """The exchange is over; keep the connection if it can serve another."""
        self._in_use.discard(connection)
        if not connection.is_reusable:
            return
        connection.idle_since = connection.loop.time()
        waiting = self._idle.setdefault(place, [])
        waiting.append(connection)
        self._idle.move_to_end(place)
        self._idle_count += 1
        if len(waiting) > self._limits.idle_per_host:
            self._drop(waiting)
        elif self._idle_count > self._limits.max_idle:
            self._drop(next(waiting for waiting in self._idle.values() if waiting))
        if self._sweeper is None:
            self._sweep_later()

    async def close(self) -> None:
        """Close every connection, those in use too."""
        await self._tls.close()
        if self._sweeper is not None:
            self._sweeper.cancel()
            self._sweeper = None
        for connection in [*self._in_use, *(one for waiting in self._idle.values() for one in waiting)]:
            connection.abort()
        self._deadlines.close()
        self._idle.clear()
        self._idle_count = 0

    async def _trust(self) -> ssl.SSLContext:
        # Reading the system's root certificates takes milliseconds, which the loop must not stand still for.
        context = await asyncio.to_thread(ssl.create_default_context)
        context.set_alpn_protocols(["http/1.1"])
        self._context = context
        return context

    def _drop(self, waiting: list[Connection]) -> None:
        self._idle_count -= 1
        waiting.pop(0).abort()

    def _sweep_later(self) -> None:
        delay = self._limits.idle_timeout.total_seconds() / 3
        self._sweeper = asyncio.get_running_loop().call_later(delay, self._sweep)

    def _sweep(self) -> None:
        oldest = asyncio.get_running_loop().time() - self._limits.idle_timeout.total_seconds()
        for place, waiting in list(self._idle.items()):
            for connection in waiting:
                if connection.idle_since <= oldest:
                    connection.abort()
            kept = [connection for connection in waiting if connection.is_reusable]
            self._idle_count -= len(waiting) - len(kept)
            if kept:
                self._idle[place] = kept
            else:
                del self._idle[place]
        self._sweeper = None
        if self._idle:
            self._sweep_later()
