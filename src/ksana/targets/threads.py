"""Threads for calls that block. A call that is given up costs the pool no thread: another takes its place.

Python cannot end a thread from outside. So a call given up goes on by itself, and its thread leaves the pool
and retires when the call returns; how many such threads may exist at once is bounded.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections import OrderedDict, deque
from collections.abc import Callable
from threading import Lock, Thread
from typing import Generic, TypeVar

_T = TypeVar("_T")


class Exhausted(Exception):
    """Too many calls that were given up still hold a thread each."""


class Ticket(Generic[_T]):
    """A call for the pool: `work` is done in a thread, and must not raise; `answer` is called with what it returns, in
    the loop the call came from, unless the call was given up before."""

    __slots__ = ("has_begun", "has_ended", "is_given_up", "post")

    post: _Post[_T]

    def __init__(self) -> None:
        self.has_begun = False
        self.has_ended = False
        self.is_given_up = False

    def work(self) -> _T:
        raise NotImplementedError

    def answer(self, value: _T) -> None:
        raise NotImplementedError

    def forget(self) -> None:
        """The call is given up."""


class Awaited(Ticket[_T]):
    """A call whose answer is awaited: `future` resolves, unless the call is given up."""

    __slots__ = ("_work", "future")

    def __init__(self, work: Callable[[], _T]) -> None:
        super().__init__()
        self._work = work
        self.future: asyncio.Future[_T] = asyncio.get_running_loop().create_future()

    def work(self) -> _T:
        return self._work()

    def answer(self, value: _T) -> None:
        if not self.future.done():
            self.future.set_result(value)

    def forget(self) -> None:
        self.future.cancel()


class Threads(Generic[_T]):
    """At most `size` daemon threads at work, plus at most `max_abandoned` that nobody waits for any more.

    Daemons, because a call that hangs must not keep the process from ending. Work must not raise.

    Waking a thread costs more than a short call. So only one is called at a time, and whoever takes a call while
    others wait calls the next: calls that block are spread over all threads, and a thread that is done with short
    ones before the next has come does those too.
    """

    def __init__(self, size: int, max_abandoned: int) -> None:
        self._size = size
        self._max_abandoned = max_abandoned
        self._lock = Lock()
        self._waiting: OrderedDict[Ticket[_T], None] = OrderedDict()
        self._idle: list[Lock] = []
        self._is_one_coming = False
        self._serving = 0
        self._abandoned = 0
        self._is_closed = False
        self._numbers = itertools.count(1)
        self._post: _Post[_T] | None = None

    @property
    def abandoned(self) -> int:
        """How many threads are held by calls that were given up."""
        return self._abandoned

    def submit(self, work: Callable[[], _T]) -> Awaited[_T]:
        """Have the work done, as with `take_on`, by a ticket that can be awaited."""
        ticket = Awaited(work)
        self.take_on(ticket)
        return ticket

    def take_on(self, ticket: Ticket[_T]) -> None:
        """Have the work done, in order of arrival. Exhausted or RuntimeError if there is no thread for it."""
        ticket.post = self._post_here()
        with self._lock:
            if self._is_closed:
                raise RuntimeError("the threads of this target are closed")
            if self._abandoned >= self._max_abandoned:
                raise Exhausted
            self._call_one()
            self._waiting[ticket] = None

    def give_up(self, ticket: Ticket[_T]) -> bool:
        """Forget a call; answer whether it had begun and goes on by itself."""
        ticket.forget()
        with self._lock:
            if ticket.is_given_up or ticket.has_ended:
                return False
            ticket.is_given_up = True
            if not ticket.has_begun:
                del self._waiting[ticket]
                return False
            self._serving -= 1
            self._abandoned += 1
            if self._waiting:
                # No new thread is no reason to fail here: the next submit tries again.
                with contextlib.suppress(RuntimeError):
                    self._call_one()
        return True

    def close(self) -> None:
        """Send idle threads home; busy ones follow when their call returns."""
        with self._lock:
            self._is_closed = True
            for bed in self._idle:
                bed.release()
            self._idle.clear()

    def _post_here(self) -> _Post[_T]:
        loop, post = asyncio.get_running_loop(), self._post
        if post is None or post.loop is not loop:
            post = self._post = _Post(loop)
        return post

    def _call_one(self) -> None:
        """Have a thread come that is free, or a new one, unless one is on its way."""
        if self._is_one_coming:
            return
        if self._idle:
            self._idle.pop().release()
        elif self._serving < self._size:
            Thread(target=self._serve, name=f"ksana-python-{next(self._numbers)}", daemon=True).start()
            self._serving += 1
        else:
            return
        self._is_one_coming = True

    # In the threads

    def _serve(self) -> None:
        bed = Lock()
        bed.acquire()
        ticket = self._come()
        while ticket is not None or (ticket := self._rest(bed)) is not None:
            answer = ticket.work()
            with self._lock:
                ticket.has_ended = True
                if ticket.is_given_up:
                    self._abandoned -= 1
                    return
                following = self._take()
            ticket.post.put(ticket, answer)
            # An idle thread must not keep the last call's arguments and result alive.
            del answer
            ticket, following = following, None

    def _come(self) -> Ticket[_T] | None:
        with self._lock:
            self._is_one_coming = False
            return self._take()

    def _rest(self, bed: Lock) -> Ticket[_T] | None:
        """Sleep until there is a call to make, or none ever again."""
        while True:
            with self._lock:
                if (ticket := self._take()) is not None:
                    return ticket
                if self._is_closed:
                    self._serving -= 1
                    return None
                self._idle.append(bed)
            # Whoever calls this thread releases it.
            bed.acquire()
            if (ticket := self._come()) is not None:
                return ticket

    def _take(self) -> Ticket[_T] | None:
        if not self._waiting:
            return None
        ticket, _ = self._waiting.popitem(last=False)
        ticket.has_begun = True
        if self._waiting:
            # This call may block, and the next one shall not wait for it.
            with contextlib.suppress(RuntimeError):
                self._call_one()
        return ticket


class _Post(Generic[_T]):
    """Brings answers to the loop they are awaited in: all that have come by the time it looks, at once."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self._answers: deque[tuple[Ticket[_T], _T]] = deque()
        self._is_called = False

    def put(self, ticket: Ticket[_T], answer: _T) -> None:
        # In this order: the loop forgets that it was called before it looks, so it sees this one or is called again.
        self._answers.append((ticket, answer))
        if not self._is_called:
            self._is_called = True
            # The loop may be closed while the call goes on.
            with contextlib.suppress(RuntimeError):
                self.loop.call_soon_threadsafe(self._deliver)

    def _deliver(self) -> None:
        self._is_called = False
        for _ in range(len(self._answers)):
            ticket, answer = self._answers.popleft()
            ticket.answer(answer)
