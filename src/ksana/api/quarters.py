"""Sums of each quarter of an hour, from sums by the minute. All zones count their hours from one of their borders."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from ksana.domain.ports import Store
from ksana.domain.queries import Minute
from ksana.domain.states import State

QUARTER: Final = timedelta(minutes=15)
# What ended just now is part of the present, even at the stroke of a minute.
_TICK: Final = timedelta(microseconds=1)
# A result may be stored a little after the minute it ended in.
_UNSETTLED: Final = timedelta(minutes=10)
_KEPT: Final = timedelta(days=33)


class Ended(NamedTuple):
    """How many runs of a kind ended in a state, and how late they had begun in all."""

    kind: str
    state: State
    runs: int
    late_ms: int


class QuarterSums:
    """Remembers the quarters that are over, which do not change any more: weeks of minutes are read once."""

    def __init__(self) -> None:
        self._sums: dict[datetime, list[Ended]] = {}
        self._since: datetime | None = None
        self._until: datetime | None = None

    async def since(self, store: Store, since: datetime, now: datetime) -> dict[datetime, list[Ended]]:
        """The sums from the quarter that holds `since` to the present; quarters in which nothing ended are left out."""
        since = quarter_of(since)
        sums, known_since, known_until = self._sums, self._since, self._until
        if known_since is None or known_until is None or known_until > now:
            sums, known_since, known_until = {}, since, since
        if since < known_since:
            sums = _summed(await store.minutes(since, known_since)) | sums
            known_since = since
        fresh = _summed(await store.minutes(known_until, now + _TICK))
        settled = max(known_until, quarter_of(now - _UNSETTLED))
        kept_since = max(known_since, quarter_of(now - _KEPT))
        everything = sums | fresh
        self._sums = {at: ended for at, ended in everything.items() if kept_since <= at < settled}
        self._since, self._until = kept_since, settled
        return {at: ended for at, ended in everything.items() if at >= since}


def _summed(minutes: Iterable[Minute]) -> dict[datetime, list[Ended]]:
    counts: dict[datetime, dict[tuple[str, State], list[int]]] = defaultdict(dict)
    for minute in minutes:
        quarter = counts[quarter_of(minute.minute_at)]
        sums = quarter.setdefault((minute.kind, minute.state), [0, 0])
        sums[0] += minute.count
        sums[1] += minute.late_ms
    return {
        at: [Ended(kind, state, count, late_ms) for (kind, state), (count, late_ms) in quarter.items()]
        for at, quarter in counts.items()
    }


def quarter_of(at: datetime) -> datetime:
    """Where the quarter begins that holds this instant."""
    return at.replace(minute=at.minute // 15 * 15, second=0, microsecond=0)
