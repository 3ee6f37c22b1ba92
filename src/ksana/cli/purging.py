"""`ksana queue purge`: take what waits in a queue out for good."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ksana.cli.asking import asked, confirmed_by_name
from ksana.cli.bulk import Filtered
from ksana.cli.jobs import DRY_RUN, YES
from ksana.cli.output import Out

if TYPE_CHECKING:
    from ksana.client import Client

_WAITING = ("WAITING", "SCHEDULED", "RETRYING")


@click.command()
@click.argument("name", metavar="QUEUE")
@click.option("--dead", "with_dead", is_flag=True, help="Its dead letters, too.")
@click.option(
    "--held", "with_held", is_flag=True, help="What workers hold, too; they will be told when they settle it."
)
@click.option("--reason", default="", help="Why, for whoever looks at it later.")
@YES
@DRY_RUN
@asked
def purge(
    name: str, with_dead: bool, with_held: bool, reason: str, is_yes: bool, is_dry: bool, server: Client, out: Out
) -> None:
    """Cancel all items that wait in QUEUE, the oldest 100,000 at once. They are canceled for good, and kept as long as
    other canceled runs. New items are taken meanwhile; pause the queue first to keep them out."""
    states = [*_WAITING, *(["RUNNING"] if with_held else []), *(["DEAD_LETTER"] if with_dead else [])]
    many = Filtered(
        server,
        out,
        "purge",
        "item",
        {"queue": name, "state": states},
        reason=reason,
        listing=f"ksana queue items {name}",
    )
    if is_dry:
        many.show_plan()
        return
    total = many.plan().total
    if total:
        confirmed_by_name(out, is_yes, f"Purge {total} item(s) of {name}?", name)
    left = total - many.carry_out().total
    if left > 0:
        out.say(f"{left} more wait in {name}; purge it again for these")
