"""Every numbered must of the CronJob documents is named by a test that shows it."""

import re
from pathlib import Path

TESTS = Path(__file__).parents[2]
LAST = 168
OPTIONAL = {75, 153}
OUT_OF_SCOPE = {10, 11, 12, 13, 30}
ROADMAP = {25, *range(154, 169)}
MUSTS = set(range(1, LAST + 1)) - OPTIONAL - OUT_OF_SCOPE - ROADMAP


def test_every_must_has_a_test_that_names_it() -> None:
    named: set[int] = set()
    for path in TESTS.rglob("test_*.py"):
        if path != Path(__file__):
            named |= {int(number) for number in re.findall(r"\bC-(\d+)\b", path.read_text())}
    assert len(MUSTS) == 145
    assert sorted(MUSTS - named) == []
