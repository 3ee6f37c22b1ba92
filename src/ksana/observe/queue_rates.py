"""How often items of the queue succeed, and how often they are tried again: two rates of a node since its start."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Final

from ksana.domain.claims import Claimed
from ksana.domain.fires import Gap
from ksana.domain.items import KIND, Rates
from ksana.domain.jobs import Job
from ksana.domain.moves import Move
from ksana.domain.states import FAILURES, Reason, State

# Items that go back for one of these were not tried in vain.
_NO_FAILURE: Final = frozenset({Reason.OPERATOR, Reason.RELEASED})


class QueueRates:
    """Counts what workers say of items."""

    def __init__(self) -> None:
        self._succeeded = self._failed = self._requeued = 0

    def __call__(self) -> Rates:
        over = self._succeeded + self._failed
        tried = over + self._requeued
        return Rates(self._succeeded / over if over else 0.0, self._requeued / tried if tried else 0.0)

    def on_moved(self, moves: Sequence[tuple[Move, Job | None]], now: datetime) -> None:
        for move, _ in moves:
            run = move.run
            if run.kind != KIND:
                continue
            if run.state is State.SUCCESS:
                self._succeeded += 1
            elif run.state in FAILURES:
                self._failed += 1
            elif run.state is State.RETRYING and run.reason not in _NO_FAILURE:
                self._requeued += 1

    def on_fired(self, runs: Sequence[Claimed], gaps: Sequence[Gap], now: datetime) -> None: ...

    def on_started(self, claimed: Sequence[Claimed], now: datetime) -> None: ...

    def on_lost(self, run_ids: Iterable[int], now: datetime) -> None: ...

    def on_changed(self, jobs: Sequence[Job], runs: Sequence[Claimed], now: datetime) -> None: ...

    def on_store(self, available: bool, error: str) -> None: ...

    def on_clock_jump(self, jump: timedelta) -> None: ...
