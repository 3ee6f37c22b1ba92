"""`ksana workers`: who shares the work, nodes of the store and those who hold items of a queue."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING
from urllib.parse import quote

import click
import msgspec

from ksana.cli.asking import asked
from ksana.cli.groups import Nouns
from ksana.cli.output import Cell, Column, Out

if TYPE_CHECKING:
    from ksana.client import Client


class Worker(msgspec.Struct, frozen=True, kw_only=True):
    """A node, or somebody who holds items of a queue; `until` is when its lease, or the first of its items', ends."""

    name: str
    kind: str
    state: str
    queue: str | None = None
    items: int | None = None
    started_at: datetime | None = None
    until: datetime | None = None


@click.group(cls=Nouns)
def workers() -> None:
    """See who does the work."""


@workers.command("list")
@asked
def list_workers(server: Client, out: Out) -> None:
    """List nodes and how long their leases last, and who holds items of which queue."""
    columns: list[Column[Worker]] = [
        Column("name", lambda one: Cell(one.name, "bold")),
        Column("kind", lambda one: one.kind),
        Column("state", lambda one: Cell(one.state, "red" if one.state == "lapsed" else "green")),
        Column("queue", lambda one: one.queue or ""),
        Column("count", lambda one: "" if one.items is None else str(one.items)),
        Column("started", lambda one: out.instant(one.started_at)),
        Column("until", lambda one: out.instant(one.until)),
    ]
    out.table(columns, [*_nodes(server), *_holders(server)], lambda one: one.name)


def _nodes(server: Client) -> Iterator[Worker]:
    for node in server.ask("GET", "/api/v2/nodes"):
        yield Worker(
            name=node["name"],
            kind="node",
            state="alive" if node["is_alive"] else "lapsed",
            started_at=datetime.fromisoformat(node["started_at"]),
            until=datetime.fromisoformat(node["lease_until"]),
        )


def _holders(server: Client) -> Iterator[Worker]:
    for queue in server.ask("GET", "/api/v2/queues")["items"]:
        if not queue["held"]:
            continue
        name = queue["queue"]
        for holder in server.ask("GET", f"/api/v2/queues/{quote(name, safe='')}/holders")["items"]:
            until = holder["oldest_until"]
            yield Worker(
                name=holder["holder"],
                kind="worker",
                state="holds items",
                queue=name,
                items=holder["items"],
                until=None if until is None else datetime.fromisoformat(until),
            )
