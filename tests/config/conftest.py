"""Every test of the configuration works in a directory of its own."""

from pathlib import Path

import pytest

from tests.config.loading import Place


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)
