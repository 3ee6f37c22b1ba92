"""Directories for JSON stores."""

from pathlib import Path

import pytest

from tests.stores.json.files import Place


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path / "data")
