"""Waiting for a run: its verdict is the command's."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ksana.cli.looks import run_columns
from ksana.cli.output import Out
from ksana.cli.problems import BAD_ANSWER

if TYPE_CHECKING:
    from ksana.client import Client, Run

WAIT = click.option(
    "--wait",
    is_flag=False,
    flag_value="1h",
    metavar="[SPAN]",
    help="Wait for the end, for at most 1h or the span given; exit with 1 if it ends badly, 7 if it does not end.",
)


def ended(server: Client, out: Out, run: Run, limit: str) -> None:
    """Show the run once it is over; SystemExit unless it ended well."""
    out.say(f"run {run.id} of {run.job_name or run.kind} …")
    over = server.runs.wait(run, limit)
    out.row(run_columns(out), over, lambda one: one.id)
    if not over.ok:
        raise SystemExit(BAD_ANSWER)
