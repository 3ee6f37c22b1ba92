"""The units, read by systemd itself."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from tests.deploy.tools import DEPLOY, parsed, run_tool, unknown_settings

UNITS = sorted((DEPLOY / "systemd").glob("*.service"))


def placed(unit: Path, directory: Path) -> Path:
    """The unit with a program that is there, since a missing one is an error, and no Ksana is installed in /opt."""
    text = unit.read_text("utf-8")
    text = text.replace("/opt/ksana/bin/ksana", sys.executable).replace("/opt/ksana/app", str(directory))
    copy = directory / unit.name
    copy.write_text(text, "utf-8")
    return copy


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_systemd_has_nothing_to_say_against_it(unit: Path, tmp_path: Path) -> None:
    code, said = run_tool("systemd-analyze", "verify", placed(unit, tmp_path))
    assert (code, [line for line in said.splitlines() if unit.name in line]) == (0, [])


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_it_may_do_little(unit: Path, tmp_path: Path) -> None:
    _, said = run_tool("systemd-analyze", "security", "--offline=true", "--no-pager", placed(unit, tmp_path))
    found = re.search(r"Overall exposure level for .*?: ([\d.]+)", said)
    assert found, said
    assert float(found[1]) <= 1.5


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_it_runs_a_command_of_ours_and_waits_for_its_end(unit: Path) -> None:
    text = unit.read_text("utf-8")
    started = re.search(r"^ExecStart=/opt/ksana/bin/ksana (.*)$", text, re.MULTILINE)
    assert started
    parsed(started[1].replace("%i", "shop:app").split())
    assert unknown_settings(text) == set()
    # Longer than the 10 s that Ksana takes by default.
    assert "TimeoutStopSec=30s" in text
