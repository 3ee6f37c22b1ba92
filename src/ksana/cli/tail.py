"""`ksana tail`: what happens, as it happens."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

import click

from ksana.cli.asking import asked
from ksana.cli.choosing import state_filter, states_of
from ksana.cli.finding import find_job, job_names
from ksana.cli.output import Out

if TYPE_CHECKING:
    from ksana.client import Client


@click.command()
@click.argument("job", required=False, shell_complete=job_names)
@state_filter
@click.option("--tag", help="Runs of jobs with this tag.")
@click.option("--kind", help="Runs of this kind of target.")
@click.option("-n", "count", type=click.IntRange(1), help="End after so many lines (default: at Ctrl-C).")
@asked
def tail(
    job: str | None,
    states: tuple[str, ...],
    tag: str | None,
    kind: str | None,
    count: int | None,
    server: Client,
    out: Out,
) -> None:
    """Show runs of all jobs or of one as they begin, rest and end: `ksana tail --state bad` only what goes wrong."""
    from ksana.cli.following import follow_all, tail_columns

    words: dict[str, Any] = {"tag": tag, "kind": kind}
    if job is not None:
        words["job"] = find_job(server, job)
    wanted = states_of(states)
    out.say("following runs; Ctrl-C ends it")
    for run in islice(follow_all(server, words, wanted), count):
        out.row(tail_columns(out), run, lambda one: one.id)
