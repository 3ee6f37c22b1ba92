"""The plug-in that pytest loads by itself. It imports nothing of Ksana until a test asks for the fixture."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from ksana.testing.rehearsal import Rehearsal


@pytest.fixture(name="ksana")
def ksana_fixture() -> Iterator[Rehearsal]:
    """Ksana on a clock of the test's own, with HTTP that answers as the test says. See docs/testing.md."""
    from ksana.testing.rehearsal import Rehearsal

    with Rehearsal() as rehearsal:
        yield rehearsal
