"""Threads for calls that block. A call that is given up costs the pool no thread: another takes its place.

Python cannot end a thread from outside. So a call given up goes on by itself, and its thread leaves the pool
and retires when the call returns; how many such threads may exist at once is bounded.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections import OrderedDict
from collections.abc import Callable
from threading import Condition, Thread
from typing import Generic, TypeVar

_T = TypeVar("_T")


class Exhausted(Exception):
    """Too many calls that were given up still hold a thread each."""


class Ticket(Generic[_T]):
    """A call handed to the pool. `future` resolves in the loop it came from, unless the call is given up."""

    def __init__(self, work: Callable[[], _T]) -> None:
        self.work = work
        self.loop = asyncio.get_running_loop()
        self.future: asyncio.Future[_T] = self.loop.create_future()
        self.has_begun = False
        self.has_ended = False
        self.is_given_up = False

    def deliver(self, answer: _T) -> None:
        # The loop may be closed while the call goes on.
        with contextlib.suppress(RuntimeError):
            self.loop.call_soon_threadsafe(self._resolve, answer)

    def _resolve(self, answer: _T) -> None:
        if not self.future.done():
            self.future.set_result(answer)


class Threads(Generic[_T]):
    """At most `size` daemon threads at work, plus at most `max_abandoned` that nobody waits for any more.

    Daemons, because a call that hangs must not keep the process from ending. Work must not raise.
    """

    def __init__(self, size: int, max_abandoned: int) -> None:
        self._size = size
        self._max_abandoned = max_abandoned
        self._changed = Condition()
        self._waiting: OrderedDict[Ticket[_T], None] = OrderedDict()
        self._serving = 0
        self._pending = 0
        self._abandoned = 0
        self._is_closed = False
        self._numbers = itertools.count(1)

    @property
    def abandoned(self) -> int:
        """How many threads are held by calls that were given up."""
        return self._abandoned

    def submit(self, work: Callable[[], _T]) -> Ticket[_T]:
        """Have the work done, in order of arrival. Exhausted or RuntimeError if there is no thread for it."""
        ticket = Ticket(work)
        with self._changed:
            if self._is_closed:
                raise RuntimeError("the threads of this target are closed")
            if self._abandoned >= self._max_abandoned:
                raise Exhausted
            self._pending += 1
            try:
                self._staff()
            except RuntimeError:
                self._pending -= 1
                raise
            self._waiting[ticket] = None
            self._changed.notify()
        return ticket

    def give_up(self, ticket: Ticket[_T]) -> bool:
        """Forget a call; answer whether it had begun and goes on by itself."""
        ticket.future.cancel()
        with self._changed:
            if ticket.is_given_up or ticket.has_ended:
                return False
            ticket.is_given_up = True
            self._pending -= 1
            if not ticket.has_begun:
                del self._waiting[ticket]
                return False
            self._serving -= 1
            self._abandoned += 1
            # No new thread is no reason to fail here: the next submit tries again.
            with contextlib.suppress(RuntimeError):
                self._staff()
        return True

    def close(self) -> None:
        """Send idle threads home; busy ones follow when their call returns."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()

    def _staff(self) -> None:
        if self._serving < min(self._size, self._pending):
            Thread(target=self._serve, name=f"ksana-python-{next(self._numbers)}", daemon=True).start()
            self._serving += 1

    def _serve(self) -> None:
        while (ticket := self._take()) is not None:
            answer = ticket.work()
            with self._changed:
                ticket.has_ended = True
                if ticket.is_given_up:
                    self._abandoned -= 1
                    return
                self._pending -= 1
            ticket.deliver(answer)
            # An idle thread must not keep the last call's arguments and result alive.
            del ticket, answer

    def _take(self) -> Ticket[_T] | None:
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._is_closed)
            if not self._waiting:
                self._serving -= 1
                return None
            ticket, _ = self._waiting.popitem(last=False)
            ticket.has_begun = True
            return ticket
