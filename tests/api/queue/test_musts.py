"""Every S number that is a must is named by a test that shows it."""

from __future__ import annotations

import re
from pathlib import Path

TESTS = Path(__file__).parents[2]
MUSTS = set(range(1, 43))


def test_every_must_has_a_test_that_names_it() -> None:
    named: set[int] = set()
    for path in TESTS.rglob("test_*.py"):
        if path != Path(__file__):
            named |= {int(number) for number in re.findall(r"\bS-(\d+)\b", path.read_text())}
    assert sorted(MUSTS - named) == []
