"""Telling observers what the runner did: in the order in which it happened, once what it led to is on its way."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from datetime import datetime

from ksana.domain.claims import Claimed
from ksana.domain.ports import Observer
from ksana.engine.results import Result

# A result that is stored lets others start, which may end at once and be on their way to the store again: by then the
# loop has come round this often, and while the store is at work nobody waits for what observers do.
_ROUNDS = 3


class Teller:
    """Gathers what there is to tell."""

    def __init__(self, observers: Sequence[Observer]) -> None:
        self._observers = observers
        self._news: list[_Starts | _Moves] = []

    def started(self, claimed: Claimed, now: datetime) -> None:
        """An attempt begins; observers are told of all starts of a moment at once."""
        self._tell_soon()
        last = self._news[-1] if self._news else None
        if isinstance(last, _Starts):
            last.claimed.append(claimed)
            last.now = now
        else:
            self._news.append(_Starts(claimed, now))

    def moved(self, results: list[Result], lost: Collection[int], now: datetime) -> None:
        """Results are stored, but for those that were lost."""
        if results:
            self._tell_soon()
            kept = [result for result in results if result[0].run.id not in lost] if lost else results
            self._news.append(_Moves(kept, lost, now))

    def _tell_soon(self) -> None:
        if not self._news:
            self._tell_after(_ROUNDS)

    def _tell_after(self, rounds: int) -> None:
        if rounds:
            asyncio.get_running_loop().call_soon(self._tell_after, rounds - 1)
        else:
            self.tell()

    def tell(self) -> None:
        """Tell what has not been told yet."""
        news, self._news = self._news, []
        for one in news:
            for observer in self._observers:
                one.tell(observer)


class _Starts:
    __slots__ = ("claimed", "now")

    def __init__(self, claimed: Claimed, now: datetime) -> None:
        self.claimed = [claimed]
        self.now = now

    def tell(self, observer: Observer) -> None:
        observer.on_started(self.claimed, self.now)


class _Moves:
    __slots__ = ("kept", "lost", "now")

    def __init__(self, kept: list[Result], lost: Collection[int], now: datetime) -> None:
        self.kept = kept
        self.lost = lost
        self.now = now

    def tell(self, observer: Observer) -> None:
        if self.kept:
            observer.on_moved(self.kept, self.now)
        if self.lost:
            observer.on_lost(self.lost, self.now)
