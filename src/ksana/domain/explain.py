"""What an expression will do: its canonical text, its next fires, and what about it tends to surprise."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta, tzinfo
from typing import Final

import msgspec

from ksana.domain.cron import Cron, parse_cron
from ksana.domain.cron_fields import DATE, HOUR, MINUTE, MONTH, SECOND, UNITS, WEEKDAY
from ksana.domain.offsets import offsets_of
from ksana.domain.times import EPOCH

_SECOND: Final = timedelta(seconds=1)
_RESTARTS: Final = {
    SECOND: "minute",
    MINUTE: "hour",
    HOUR: "day",
    DATE: "month",
    MONTH: "year",
    WEEKDAY: "week",
}


class Explanation(msgspec.Struct, frozen=True):
    """The answer to "when will this run?"."""

    normalized: str
    next: list[datetime]
    notes: list[str]


def explain(expr: str, tz: tzinfo, from_at: datetime, n: int) -> Explanation:
    """The next `n` fires after an instant, with notes on them and on the expression."""
    cron = parse_cron(expr)
    fires: list[datetime] = []
    while len(fires) < n:
        fire = cron.next_after(fires[-1] if fires else from_at, tz)
        if fire is None:
            break
        fires.append(fire)
    notes = [*_uneven_steps(cron), *_either_day(cron)]
    if fires:
        notes += _clock_changes(cron, tz, from_at, fires[-1])
    return Explanation(cron.normalized, fires, notes)


def _uneven_steps(cron: Cron) -> Iterator[str]:
    for unit, text in zip(UNITS, cron.normalized.split(), strict=True):
        size = unit.top - unit.low + 1
        for term in text.split(","):
            body, _, step = term.partition("/")
            if body != "*" or not step:
                continue
            if int(step) >= size:
                yield f"{unit.name} {term}: the step is as long as the field, so it selects only {unit.low}"
            elif unit is DATE or size % int(step):
                yield (
                    f"{unit.name} {term}: does not divide the field evenly, the count restarts with "
                    f"every {_RESTARTS[unit]}"
                )


def _either_day(cron: Cron) -> Iterator[str]:
    *_, date, _, weekday = cron.normalized.split()
    if "*" not in date.split(",") and "*" not in weekday.split(","):
        yield f"fires when day-of-month {date} or day-of-week {weekday} matches, not only when both do"


def _clock_changes(cron: Cron, tz: tzinfo, from_at: datetime, until: datetime) -> Iterator[str]:
    offsets = offsets_of(tz)
    second, last = (from_at - EPOCH) // _SECOND, (until - EPOCH) // _SECOND
    before = offsets.at(second)
    while before.end <= last:
        after = offsets.at(before.end)
        old, new = after.start + before.offset, after.start + after.offset
        if new > old and cron.count_local(old - 1, new - 1):
            done = "they fire together at its end" if cron.is_fixed else "they are left out"
            yield f"clocks skip from {_wall(old)} to {_wall(new)}: times in the gap do not exist; {done}"
        elif new < old and cron.count_local(new - 1, old - 1):
            done = "they fire the first time only" if cron.is_fixed else "they fire both times"
            yield f"clocks go back from {_wall(old)} to {_wall(new)}: times in between come twice; {done}"
        before = after


def _wall(local: int) -> str:
    return f"{EPOCH + timedelta(0, local):%Y-%m-%d %H:%M}"
