"""The stores a real server is started on."""

from collections.abc import Callable
from pathlib import Path

import pytest

STORES = ("sqlite", "postgres", "mysql")


@pytest.fixture(params=STORES)
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty store for a server of its own."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/ksana.db"
    if request.param == "json":
        return f"json:{tmp_path}/data"
    fresh: Callable[[], str] = request.getfixturevalue(f"fresh_{request.param}_database")
    return fresh()
