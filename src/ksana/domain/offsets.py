"""A zone's UTC offsets as runs of integer seconds, so that a search need not ask the zone again.

`zoneinfo` does not tell its transitions, so they are found by asking for the offset every three days and
halving where it changed. Runs are found in blocks of eight years, the first time somebody looks there.
"""

from __future__ import annotations

from bisect import bisect_right
from datetime import datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from typing import Final, NamedTuple

_DAY: Final = 86_400
# The calendar repeats itself, weekdays included, every 146,097 days; a fiftieth of that is eight years.
_BLOCKS_IN_CYCLE: Final = 50
_BLOCK: Final = 146_097 * _DAY // _BLOCKS_IN_CYCLE
# From 2106 on every zone follows a yearly rule, so a block is the one of 400 years before, moved.
_FIRST_BY_RULE: Final = 17
# The closest two changes in the tz database are just under four days apart.
_STRIDE: Final = 3 * _DAY
# Clocks never went back by more than a day, so a week of history settles what they had already shown.
_HISTORY: Final = 7 * _DAY
_MOST_BLOCKS: Final = 256
_FOREVER: Final = 10**15
_FIRST_PROBE: Final = (datetime(1, 1, 3) - datetime(1970, 1, 1)) // timedelta(seconds=1)  # noqa: DTZ001
_LAST_PROBE: Final = (datetime(9999, 12, 29) - datetime(1970, 1, 1)) // timedelta(seconds=1)  # noqa: DTZ001


class Run(NamedTuple):
    """UTC seconds [start, end) during which local time is UTC + offset.

    `seen` is the first local second the wall clock had not yet shown when the run began. After a step forward
    it is earlier than the run's first local second (the gap lies between); after a step back it is later
    (what lies between is shown a second time).
    """

    start: int
    end: int
    offset: int
    seen: int


class Offsets:
    """The runs of one zone."""

    __slots__ = ("_blocks", "_epoch", "_only", "_tz")

    def __init__(self, tz: tzinfo) -> None:
        self._tz = tz
        self._epoch = datetime(1970, 1, 1, tzinfo=tz)
        self._blocks: dict[int, tuple[list[int], list[Run]]] = {}
        self._only: Run | None = None
        if isinstance(tz, timezone):
            self._only = Run(-_FOREVER, _FOREVER, self._offset_at(0), -_FOREVER)

    def at(self, second: int) -> Run:
        """The run that holds this UTC second. A long run may be handed out in pieces."""
        if self._only is not None:
            return self._only
        starts, runs = self._blocks.get(second // _BLOCK) or self._block(second // _BLOCK)
        return runs[bisect_right(starts, second) - 1]

    def _block(self, index: int) -> tuple[list[int], list[Run]]:
        cycles = max(0, (index - _FIRST_BY_RULE) // _BLOCKS_IN_CYCLE)
        if cycles:
            index_before = index - cycles * _BLOCKS_IN_CYCLE
            _, runs = self._blocks.get(index_before) or self._block(index_before)
            ahead = (index - index_before) * _BLOCK
            runs = [Run(start + ahead, end + ahead, offset, seen + ahead) for start, end, offset, seen in runs]
        else:
            runs = self._explore(index)
        if len(self._blocks) >= _MOST_BLOCKS:
            self._blocks.clear()
        block = self._blocks[index] = ([run.start for run in runs], runs)
        return block

    def _explore(self, index: int) -> list[Run]:
        first, last = index * _BLOCK, (index + 1) * _BLOCK
        start = first - _HISTORY
        offset = self._offset_at(start)
        seen = start + offset
        runs: list[Run] = []
        while start < last:
            end = self._change_after(start, offset, last)
            if start < first < end:
                seen = max(seen, first + offset)
                start = first
            if start >= first:
                runs.append(Run(start, end, offset, seen))
            seen = max(seen, end + offset)
            start, offset = end, self._offset_at(end)
        return runs

    def _change_after(self, start: int, offset: int, last: int) -> int:
        low = start
        while low < last:
            high = min(low + _STRIDE, last)
            if self._offset_at(high) != offset:
                while high - low > 1:
                    middle = (low + high) // 2
                    if self._offset_at(middle) == offset:
                        low = middle
                    else:
                        high = middle
                return high
            low = high
        return last

    def _offset_at(self, second: int) -> int:
        probe = min(max(second, _FIRST_PROBE), _LAST_PROBE)
        # `fromutc` wants UTC wearing the zone as its tzinfo; the difference of the two is then taken naively.
        moment = self._epoch + timedelta(0, probe)
        offset = self._tz.fromutc(moment) - moment
        return offset.days * _DAY + offset.seconds


@lru_cache(maxsize=256)
def offsets_of(tz: tzinfo) -> Offsets:
    """The runs of a zone, remembered for the zones in use."""
    return Offsets(tz)
