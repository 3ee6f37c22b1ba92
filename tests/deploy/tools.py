"""Programs that read what we ship. A machine need not have them; what is not looked at is said aloud at the end."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from ksana.cli import command as ksana_command
from ksana.config.fields import FIELDS
from tests.kit.processes import DEADLINE

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
SETTINGS = {name for field in FIELDS for name in field.env} | {"KSANA_URL", "KSANA_KEY", "KSANA_CONFIG"}
_VARIABLE = re.compile(r"\bKSANA_[A-Z_]+\b")


def run_tool(*words: str | Path, directory: Path | None = None) -> tuple[int, str]:
    """Run a program, and give its exit code and all that it printed; skip the test where the program is missing."""
    found = shutil.which(str(words[0]), path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
    if found is None:
        pytest.skip(f"TOOL: {words[0]} is not installed")
    # Nothing of a person's own settings, no server they have chosen, no pager.
    environment = {"PATH": os.environ.get("PATH", ""), "HOME": str(directory or ROOT), "LC_ALL": "C.UTF-8"}
    done = subprocess.run(
        [found, *map(str, words[1:])],
        cwd=directory,
        env=environment,
        capture_output=True,
        text=True,
        timeout=DEADLINE,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def documents(path: Path) -> list[Any]:
    """Every document of a YAML file."""
    return [document for document in yaml.safe_load_all(path.read_text("utf-8")) if document is not None]


def unknown_settings(text: str) -> set[str]:
    """Variables of ours that a text names and no setting has."""
    return set(_VARIABLE.findall(text)) - SETTINGS


def parsed(words: list[str]) -> click.Context:
    """What `ksana` makes of these words, options included; raises where it would refuse them."""
    found: click.Command = ksana_command
    context = click.Context(found)
    while isinstance(found, click.Group):
        name, command, words = found.resolve_command(context, words)
        assert command is not None
        found, context = command, click.Context(command, parent=context, info_name=name)
    return found.make_context(context.info_name, words, parent=context.parent)
