"""The plug-in as pytest loads it."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

USES = """
def test_hourly(ksana):
    ksana.job("hourly", target={"kind": "noop"}, every="1h")
    ksana.advance("3h")
    assert ksana.runs("hourly").count == 3
"""
USES_NOT = """
import sys

def test_nothing_of_it_is_there():
    assert not [name for name in sys.modules if name.startswith(("ksana.engine", "ksana.api", "starlette", "msgspec"))]
"""


def test_it_gives_the_fixture_to_whoever_asks_and_costs_others_nothing(tmp_path: Path) -> None:
    (tmp_path / "test_a.py").write_text(USES_NOT)
    (tmp_path / "test_b.py").write_text(USES)
    named = ("--disable-plugin-autoload", "-p", plugin())
    command = [sys.executable, "-m", "pytest", "-q", "-W", "error", *named, "-p", "no:cacheprovider", str(tmp_path)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert "2 passed" in done.stdout, done.stdout + done.stderr


def plugin() -> str:
    """The module that pytest finds by itself in an environment that has Ksana."""
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    module: str = project["entry-points"]["pytest11"]["ksana"]
    return module
