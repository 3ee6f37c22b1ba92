"""What comes in on one turn of the loop is read together, and what goes out because of it is sent together.

A call of the system leaves the processor's caches cold for what runs next. With two of them between any two answers,
all that is done about an answer takes twice as long.
"""

from __future__ import annotations

import logging
from asyncio import AbstractEventLoop
from typing import Protocol

log = logging.getLogger(__name__)


class Correspondent(Protocol):
    """A connection."""

    loop: AbstractEventLoop

    def read(self) -> None:
        """Take in what has come."""
        ...

    def write(self, request: bytes) -> None:
        """Send this, unless there is no use in it any more."""
        ...


class Post:
    """One for all connections of a loop."""

    def __init__(self) -> None:
        self._arrivals: list[Correspondent] = []
        self._departures: list[tuple[Correspondent, bytes]] = []
        self._is_coming = False

    def bring(self, to: Correspondent) -> None:
        """Something has come for it; have it read soon."""
        self._arrivals.append(to)
        if not self._is_coming:
            self._call(to.loop)

    def send(self, on: Correspondent, request: bytes) -> None:
        """Have this sent soon."""
        self._departures.append((on, request))
        if not self._is_coming:
            self._call(on.loop)

    def _call(self, loop: AbstractEventLoop) -> None:
        self._is_coming = True
        loop.call_soon(self._go_round)

    def _go_round(self) -> None:
        # One that fails must not keep the others from their letters.
        arrivals, self._arrivals = self._arrivals, []
        for to in arrivals:
            try:
                to.read()
            except Exception:
                log.exception("what came of a call could not be told")
        departures, self._departures = self._departures, []
        self._is_coming = False
        for on, request in departures:
            try:
                on.write(request)
            except Exception:
                log.exception("a call could not be sent")
