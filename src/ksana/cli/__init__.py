"""The `ksana` command: nouns and verbs, data on stdout, everything else on stderr.

Commands import what they need when they run, so that `ksana explain` and `--help` answer at once.
"""

from __future__ import annotations

import sys

import click

import ksana
from ksana.cli.db import db
from ksana.cli.explain import explain
from ksana.cli.imports import import_
from ksana.cli.keys import key
from ksana.cli.problems import showing_problems
from ksana.cli.serve import serve, worker
from ksana.cli.settings import config
from ksana.cli.store import store

__all__ = ["command", "main"]


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(ksana.__version__, prog_name="ksana")
def command() -> None:
    """Ksana runs things on time."""


@command.command()
def version() -> None:
    """Print the version."""
    click.echo(ksana.__version__)


for _command in (serve, worker, explain, db, store, key, import_, config, version):
    command.add_command(_command)


def main() -> None:
    """Entry point of the `ksana` script."""
    with showing_problems():
        command(args=_arguments(sys.argv[1:]), prog_name="ksana")


def _arguments(given: list[str]) -> list[str]:
    """`-config=FILE` and `-config FILE` mean `--config`, as people coming from Go write it."""
    return [f"-{text}" if text == "-config" or text.startswith("-config=") else text for text in given]
