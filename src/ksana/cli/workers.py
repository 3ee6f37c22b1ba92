"""`ksana workers`: who shares the work, nodes of the store and those who hold items of a queue."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import click
import msgspec

from ksana.cli.asking import asked
from ksana.cli.groups import Nouns
from ksana.cli.output import Cell, Column, Out
from ksana.domain.errors import InvalidArgument, NotFound

if TYPE_CHECKING:
    from ksana.client import Client


_STYLES = {"lapsed": "red", "draining": "yellow", "drained": "yellow"}


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
    """See who does the work, and have a node end its own."""


@workers.command("list")
@asked
def list_workers(server: Client, out: Out) -> None:
    """List nodes and how long their leases last, and who holds items of which queue."""
    columns: list[Column[Worker]] = [
        Column("name", lambda one: Cell(one.name, "bold")),
        Column("kind", lambda one: one.kind),
        Column("state", lambda one: Cell(one.state, _STYLES.get(one.state, "green"))),
        Column("queue", lambda one: one.queue or ""),
        Column("count", lambda one: "" if one.items is None else str(one.items)),
        Column("started", lambda one: out.instant(one.started_at)),
        Column("until", lambda one: out.instant(one.until)),
    ]
    out.table(columns, [*_nodes(server), *_holders(server)], lambda one: one.name)


@workers.command()
@click.argument("node", metavar="NODE")
@click.option("--undo", "is_undone", is_flag=True, help="Let it take on work again.")
@click.option("--reason", default="", help="Why, for whoever looks at it later.")
@asked
def drain(node: str, is_undone: bool, reason: str, server: Client, out: Out) -> None:
    """Have NODE, by name or id, take on nothing more and end what it has; it learns of it within a second or so.
    `ksana workers list` shows how much it still holds. A node that starts again works again."""
    found = _find(server, node)
    verb = "resume" if is_undone else "drain"
    told = server.ask("POST", f"/api/v2/nodes/{found['id']}/{verb}", {"reason": reason})
    columns = [
        Column[Any]("id", lambda one: str(one["id"])),
        Column[Any]("name", lambda one: Cell(one["name"], "bold")),
        Column[Any]("state", lambda one: _state(one)),
        Column[Any]("held", lambda one: "" if one["held"] is None else str(one["held"])),
    ]
    out.row(columns, told, lambda one: one["id"])


def _find(server: Client, text: str) -> dict[str, Any]:
    """The node of this name or id. Of several by one name, those count that are alive."""
    nodes: list[dict[str, Any]] = server.ask("GET", "/api/v2/nodes")
    named = [node for node in nodes if text in (node["name"], str(node["id"]))]
    found = [node for node in named if node["is_alive"]] or named
    if not found:
        known = ", ".join(node["name"] for node in nodes)
        raise NotFound(f"there is no node {text!r}; there is {known}")
    if len(found) > 1:
        ids = ", ".join(str(node["id"]) for node in found)
        raise InvalidArgument.of("NODE", f"{len(found)} are called {text!r}; say which by its id: {ids}")
    return found[0]


def _state(node: dict[str, Any]) -> str:
    if not node["is_alive"]:
        return "lapsed"
    if node["draining"]:
        return "draining" if node["held"] else "drained"
    return "alive"


def _nodes(server: Client) -> Iterator[Worker]:
    for node in server.ask("GET", "/api/v2/nodes"):
        yield Worker(
            name=node["name"],
            kind="node",
            state=_state(node),
            items=node["held"],
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
