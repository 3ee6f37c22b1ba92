"""Offsets: the runs found by probing are the ones the zone itself answers with."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest

from ksana.domain.offsets import Offsets

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# With the two closest pairs of changes on record: four days in Freetown, a week in Gaza.
ZONES = (
    "Africa/Freetown",
    "Asia/Gaza",
    "Africa/Casablanca",
    "America/Recife",
    "Europe/Vienna",
    "America/New_York",
)


def seconds(year: int) -> int:
    return (datetime(year, 1, 1, tzinfo=UTC) - EPOCH) // timedelta(seconds=1)


@pytest.mark.parametrize("name", ZONES)
def test_every_run_agrees_with_the_zone(name: str) -> None:
    tz, offsets, draw = ZoneInfo(name), Offsets(ZoneInfo(name)), random.Random(name)
    samples = [draw.randrange(seconds(1850), seconds(2150)) for _ in range(2000)]
    samples += [draw.randrange(seconds(2400), seconds(9980)) for _ in range(500)]
    for sample in samples:
        run = offsets.at(sample)
        assert run.start <= sample < run.end
        for second in (run.start, sample, run.end - 1):
            assert timedelta(seconds=run.offset) == (EPOCH + timedelta(seconds=second)).astimezone(tz).utcoffset()


@pytest.mark.parametrize("name", ZONES)
def test_runs_join_without_holes_and_remember_what_was_shown(name: str) -> None:
    offsets = Offsets(ZoneInfo(name))
    run = offsets.at(seconds(1930))
    shown = run.end + run.offset
    while run.end < seconds(2120):
        following = offsets.at(run.end)
        assert following.start == run.end
        assert following.seen == shown
        shown = max(shown, following.end + following.offset)
        run = following


def test_a_fixed_offset_is_one_run() -> None:
    offsets = Offsets(timezone(timedelta(hours=-3, minutes=-30)))
    assert offsets.at(seconds(1)) is offsets.at(seconds(9999))
    assert offsets.at(0).offset == -12600
