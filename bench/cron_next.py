"""How many next fires a second: this engine, cronsim and croniter, over twenty expressions.

In UTC and in a zone with daylight saving. A rate is harmonic, one step of each expression, so that a slow one
is not hidden by a quick one. The rates are those of a zone in use; what its first use costs is below.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, tzinfo
from typing import NamedTuple
from zoneinfo import ZoneInfo

from croniter import croniter
from cronsim import CronSim

from ksana.domain.cron import parse_cron
from ksana.domain.offsets import offsets_of

FIVE_FIELDS = (
    "* * * * *",
    "*/5 * * * *",
    "0 * * * *",
    "0 0 * * *",
    "30 4 1,15 * 5",
    "*/15 9-17 * * 1-5",
    "0 0 29 2 *",
    "0 0 1 1 *",
    "5,10,20 8-10/2 * * *",
    "0 12 * * MON",
    "0 0 L * *",
    "15 2 * * *",
    "59 23 31 12 *",
    "0 22 * * 1-5",
    "23 0-20/2 * * *",
    "0 0 */3 * *",
    "0 9 * * MON#2",
)
SIX_FIELDS = ("*/10 * * * * *", "0 30 9 * * *", "15,45 * 8-18 * * 1-5")
ROUNDS = 3
STEPS = 300

Step = Callable[[], object]


class Row(NamedTuple):
    engine: str
    zone: str
    steps_per_second: float
    slowest: str
    slowest_micros: float


def ours(expression: str, start: datetime, zone: tzinfo) -> Step:
    cron, at = parse_cron(expression), start

    def step() -> None:
        nonlocal at
        found = cron.next_after(at, zone)
        assert found is not None
        at = found

    return step


def with_cronsim(expression: str, start: datetime, zone: tzinfo) -> Step:
    fires = CronSim(expression, start.astimezone(zone))
    return lambda: next(fires)


def with_croniter(expression: str, start: datetime, zone: tzinfo) -> Step:
    fires = croniter(expression, start.astimezone(zone), ret_type=datetime, second_at_beginning=True)
    return lambda: fires.get_next(datetime)


ENGINES = {"ksana": ours, "cronsim": with_cronsim, "croniter": with_croniter}


def measure(engine: str, name: str, zone: tzinfo) -> Row:
    start = datetime(2026, 3, 1, 0, 0, 30, tzinfo=zone).astimezone(UTC)
    costs: dict[str, list[float]] = {}
    for _ in range(ROUNDS):
        for expression in FIVE_FIELDS + SIX_FIELDS:
            step = ENGINES[engine](expression, start, zone)
            began = time.perf_counter()
            for _ in range(STEPS):
                step()
            costs.setdefault(expression, []).append((time.perf_counter() - began) / STEPS)
    medians = {expression: statistics.median(cost) for expression, cost in costs.items()}
    slowest = max(medians, key=medians.__getitem__)
    return Row(engine, name, len(medians) / sum(medians.values()), slowest, medians[slowest] * 1e6)


def year_of_seconds(zone: tzinfo) -> float:
    """Milliseconds to count the fires of an every-second expression over a year."""
    cron, start = parse_cron("* * * * * *"), datetime(2026, 1, 1, tzinfo=UTC)
    began = time.perf_counter()
    cron.count_between(start, start + timedelta(days=365), zone)
    return (time.perf_counter() - began) * 1e3


def first_use(zone: tzinfo) -> float:
    """Milliseconds for the first step in a zone nobody has asked about yet."""
    cron, start = parse_cron("*/5 * * * *"), datetime(2026, 3, 1, tzinfo=UTC)
    offsets_of.cache_clear()
    began = time.perf_counter()
    cron.next_after(start, zone)
    return (time.perf_counter() - began) * 1e3


def main() -> list[Row]:
    rows = []
    print(f"{'engine':10}{'zone':18}{'steps/s':>10}{'µs/step':>9}{'ksana is':>10}  slowest")
    for name, zone in (("UTC", UTC), ("America/New_York", ZoneInfo("America/New_York"))):
        measured = [measure(engine, name, zone) for engine in ENGINES]
        for row in measured:
            ratio = measured[0].steps_per_second / row.steps_per_second
            print(
                f"{row.engine:10}{row.zone:18}{row.steps_per_second:10,.0f}{1e6 / row.steps_per_second:9.2f}"
                f"{ratio:9.1f}x  {row.slowest} ({row.slowest_micros:.1f} µs)"
            )
        print(
            f"{'':10}{name:18}a year of seconds counted in {year_of_seconds(zone):.2f} ms, "
            f"first use of the zone {first_use(zone):.2f} ms"
        )
        rows += measured
    return rows


if __name__ == "__main__":
    main()
