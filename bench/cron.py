"""Next fires per second against cronsim and croniter; what is measured and how is in cron_next.py.

python bench/cron.py ENGINE ZONE        one measurement
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from datetime import UTC
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from cron_next import ENGINES
from cron_next import measure as steps_of
from figures import RATE, Row, at_least
from fresh import Measurement, in_rounds, measure

# What is measured must not carry what only the one who measures needs.
if TYPE_CHECKING:
    from places import Places

_WANTED = {"cronsim": at_least(6), "croniter": at_least(12)}
_ZONES = ("UTC", "America/New_York")


def rows(places: Places, rounds: int, quick: bool) -> Iterator[Row]:
    for zone in _ZONES:
        found = in_rounds(rounds, RATE, {engine: _steps(engine, zone) for engine in ENGINES})
        for peer, wanted in _WANTED.items():
            yield Row(f"next fire, {zone}", found["ksana"], peer, found[peer], wanted)


def _steps(engine: str, zone: str) -> Measurement:
    return lambda: measure("cron.py", engine, zone)


if __name__ == "__main__":
    _zone = UTC if sys.argv[2] == "UTC" else ZoneInfo(sys.argv[2])
    print(json.dumps({"rate": steps_of(sys.argv[1], sys.argv[2], _zone).steps_per_second}))
