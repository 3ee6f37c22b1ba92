"""The `ksana` command: nouns and verbs, data on stdout, everything else on stderr.

A command is imported when it is named, and imports what it needs when it runs, so that `ksana explain` and `--help`
answer at once.
"""

from __future__ import annotations

import sys

import click

import ksana
from ksana.cli.groups import Root
from ksana.cli.problems import showing_problems

__all__ = ["command", "main"]


@click.group(
    cls=Root,
    places={
        "serve": "serve:serve",
        "demo": "demo:demo",
        "worker": "serve:worker",
        "jobs": "jobs:jobs",
        "runs": "runs:runs",
        "chains": "chains:chains",
        "queue": "queue:queue",
        "workers": "workers:workers",
        "tail": "tail:tail",
        "explain": "explain:explain",
        "import": "imports:import_",
        "doctor": "doctor:doctor",
        "health": "system:health",
        "api": "system:api",
        "bench": "bench:bench",
        "store": "store:store",
        "db": "db:db",
        "key": "keys:key",
        "config": "settings:config",
        "init": "beginning:init",
        "completion": "completion:completion",
        "version": "system:version",
    },
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
@click.version_option(ksana.__version__, prog_name="ksana")
def command() -> None:
    """Ksana runs things on time."""


def main() -> None:
    """Entry point of the `ksana` script."""
    arguments = _arguments(sys.argv[1:])
    with showing_problems("--json" in arguments):
        answer = command.main(args=arguments, prog_name="ksana", standalone_mode=False)
        sys.exit(answer if isinstance(answer, int) else 0)


def _arguments(given: list[str]) -> list[str]:
    """`-config=FILE` and `-config FILE` mean `--config`, as people coming from Go write it."""
    return [f"-{text}" if text == "-config" or text.startswith("-config=") else text for text in given]
