"""One HTTP/1.1 connection, one exchange at a time, in bounded memory. Leaving an exchange closes the connection.

Written on the loop's transports rather than on an HTTP library because an attempt that is cancelled has to let go of
its connection at once, and one that fails has to know whether a byte of it was sent.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import cast

from ksana.targets.http.answers import Answer
from ksana.targets.http.deadlines import Deadlines
from ksana.targets.http.incoming import incoming
from ksana.targets.http.known_heads import KnownHeads
from ksana.targets.http.post import Post
from ksana.targets.http.reader import AnswerReader


class LostError(Exception):
    """The exchange ended without a whole answer; `partial` is what there was of it."""

    def __init__(self, detail: str, partial: Answer | None) -> None:
        super().__init__(detail)
        self.detail = detail
        self.partial = partial


class LateError(LostError):
    """The time was up."""


class BrokenError(LostError):
    """The other side closed or reset the connection."""


class UnsentError(LostError):
    """The connection had died while nobody used it. Nothing was sent, so it may be sent another way."""


class StoppedError(LostError):
    """This side gave up."""


class GarbledError(LostError):
    """The other side does not speak HTTP, or too much of it."""


Tell = Callable[[Answer | LostError], None]


class Connection(asyncio.Protocol):
    """A connection that is open, or was."""

    def __init__(self, deadlines: Deadlines, heads: KnownHeads, post: Post) -> None:
        self.idle_since = 0.0
        self.is_lost = False
        self.loop = asyncio.get_running_loop()
        self._deadlines = deadlines
        self._heads = heads
        self._post = post
        self._reader = AnswerReader()
        self._unread: list[bytes] = []
        self._tell: Tell | None = None
        self._is_used = False
        self._has_asked = False
        self._is_reusable = False
        self._has_ended = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are no asyncio.Transport by inheritance.
        self._transport = cast(asyncio.Transport, transport)
        self._has_incoming = incoming(transport.get_extra_info("socket").fileno())

    @property
    def is_reusable(self) -> bool:
        """Whether another exchange may begin, as far as this side has heard."""
        return self._is_reusable and not (self._has_ended or self.is_lost)

    def abort(self) -> None:
        """Close at once, whatever is under way."""
        if self._tell is not None:
            self._conclude(StoppedError("", self._partial()), keeps_open=False)
        else:
            self._is_reusable = False
            self._transport.abort()

    def leave(self) -> None:
        """Close if an exchange is still under way; nothing is told of it any more."""
        if self._tell is not None:
            self._tell = _to_nobody
            self.abort()

    async def exchange(self, request: bytes, *, is_head: bool, most: int, deadline: float) -> Answer:
        """Send a request and wait for its answer. LostError if there is none."""
        if self.is_lost:
            raise UnsentError("", None) if self._is_used else BrokenError("", None)
        waiter: asyncio.Future[Answer] = self.loop.create_future()
        self.ask(request, is_head, most, deadline, partial(_settle, waiter))
        try:
            return await waiter
        finally:
            # Only a caller that was cancelled leaves before the end.
            self.leave()

    def ask(self, request: bytes, is_head: bool, most: int, deadline: float, tell: Tell) -> None:
        """Send a request, and tell later, once, what came of it: an answer, of its body no more than `most` bytes, or
        how it was lost, at the latest at the loop's `deadline`. By then another exchange may begin, if any may."""
        self._is_reusable = False
        self._is_head = is_head
        self._most = most
        self._has_heard = False
        self._tell = tell
        self._alarm = self._deadlines.remember(deadline, self._expire)
        self._post.send(self, request)

    def write(self, request: bytes) -> None:
        """Send a request, unless its exchange is over before it has begun."""
        if self._tell is None:
            return
        # Something has come in on an idle connection, be it only its end, which the loop may not have seen yet.
        if self._is_used and self._has_incoming():
            self._conclude(UnsentError("", None), keeps_open=False)
            return
        try:
            self._transport.write(request)
        except RuntimeError:
            # It is closed, of which this side has not been told yet.
            error = UnsentError("", None) if self._is_used else BrokenError("", None)
            self._conclude(error, keeps_open=False)
        else:
            self._has_asked = True

    def data_received(self, data: bytes) -> None:
        if self._is_used and not self._has_asked:
            # Were it left for later, it might be taken for the answer to the next request.
            self._hear_unasked()
            return
        self._unread.append(data)
        if len(self._unread) == 1:
            self._post.bring(self)

    def _hear_unasked(self) -> None:
        if self._tell is None:
            self.abort()
        else:
            self._conclude(UnsentError("", None), keeps_open=False)

    def read(self) -> None:
        """Take in what has come of the answer."""
        unread, self._unread = self._unread, []
        if self._tell is None or not unread:
            return
        data = unread[0] if len(unread) == 1 else b"".join(unread)
        is_first = not self._has_heard
        if is_first and not self._is_head and (answer := self._heads.answer(data, self._most)) is not None:
            self._conclude(answer, keeps_open=True)
            return
        reader = self._reader
        if is_first:
            self._has_heard = True
            reader.expect(self._is_head, self._most)
        try:
            answer = reader.feed(data)
        except ValueError as error:
            self._conclude(GarbledError(str(error), self._partial()), keeps_open=False)
            return
        if answer is not None:
            if is_first and reader.keeps_open and not self._is_head:
                self._heads.learn(data, answer)
            self._conclude(answer, keeps_open=reader.keeps_open)

    def eof_received(self) -> None:
        # The transport closes now, but tells of it only on a later turn of the loop.
        self._has_ended = True

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_lost = True
        self.read()
        if self._tell is None:
            return
        answer = self._partial()
        if self._is_used and not self._has_asked:
            self._conclude(UnsentError("", None), keeps_open=False)
        elif exc is None and answer is not None and self._reader.ends_with_connection:
            self._conclude(answer, keeps_open=False)
        else:
            self._conclude(BrokenError(str(exc or ""), answer), keeps_open=False)

    def _expire(self) -> None:
        alarm = self._alarm
        self.read()
        # By now another exchange may have begun here.
        if self._tell is not None and self._alarm is alarm:
            self._conclude(LateError("", self._partial()), keeps_open=False)

    def _partial(self) -> Answer | None:
        return self._reader.partial() if self._has_heard else None

    def _conclude(self, said: Answer | LostError, *, keeps_open: bool) -> None:
        """Tell what came of it; another exchange may begin at once."""
        tell, self._tell = self._tell, None
        assert tell is not None
        self._is_used = True
        self._has_asked = False
        self._deadlines.forget(self._alarm)
        # A request still being written when its answer is complete would run into the next one.
        if keeps_open and not self._transport.get_write_buffer_size():
            self._is_reusable = True
        else:
            # Out of time, garbled or at its end. Nothing more may come of this connection.
            self._transport.abort()
        tell(said)


def _to_nobody(said: Answer | LostError) -> None:
    """Nobody wants to know any more."""


def _settle(waiter: asyncio.Future[Answer], said: Answer | LostError) -> None:
    if waiter.done():
        return
    if isinstance(said, LostError):
        waiter.set_exception(said)
    else:
        waiter.set_result(said)
