"""What an operator may set for a queue and for the objects its items are about: open or not, limits, gates."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

import click

from ksana.cli.asking import asked
from ksana.cli.looks import span_text
from ksana.cli.output import Cell, Column, Out
from ksana.domain.errors import InvalidArgument

if TYPE_CHECKING:
    from ksana.client import Client
    from ksana.client.objects import GovernedObject
    from ksana.client.queue_settings import QueueRate, QueueSettings

_NAME = click.argument("name", metavar="QUEUE")
_REASON = click.option("--reason", default="", help="Why, for whoever looks at it later.")
_TYPES = click.Choice(["memory", "experience", "cognition"])
_GATES = click.Choice(["pass", "limit", "defer", "block"])
_NO_LIMIT = "none"


@click.command()
@_NAME
@_REASON
@asked
def pause(name: str, reason: str, server: Client, out: Out) -> None:
    """Hand out nothing more of QUEUE. What is held may be finished, and new items are taken."""
    _show(out, server.queues.pause(name, reason=reason))


@click.command()
@_NAME
@_REASON
@asked
def resume(name: str, reason: str, server: Client, out: Out) -> None:
    """Hand out items of QUEUE again."""
    _show(out, server.queues.resume(name, reason=reason))


@click.command()
@_NAME
@click.option("--concurrency", help="How many items may be held at once.")
@click.option("--rate", help="How many are handed out in how long: 10/1s.")
@click.option("--key-concurrency", help="The same for the items of each key.")
@click.option("--key-rate", help="The same for the items of each key.")
@_REASON
@asked
def limit(name: str, reason: str, server: Client, out: Out, **limits: str | None) -> None:
    """Limit how much of QUEUE is worked on, or show its limits. What is not said stays; none lifts a limit."""
    read = {"concurrency": _count, "rate": _rate, "key_concurrency": _count, "key_rate": _rate}
    said: dict[str, Any] = {
        limit: None if text == _NO_LIMIT else read[limit](text, f"--{limit.replace('_', '-')}")
        for limit, text in limits.items()
        if text is not None
    }
    _show(out, server.queues.limit(name, **said, reason=reason) if said else server.queues.settings(name))


@click.command()
@click.option("--type", "object_type", type=_TYPES, help="Objects of this type.")
@click.option("--risk", "risk_tier", type=click.Choice(["low", "medium", "high"]), help="Objects of this risk.")
@click.option(
    "--certainty",
    "epistemic_state",
    type=click.Choice(["unassessed", "uncertain", "supported", "refuted", "archived"]),
    help="Objects one may be so sure of.",
)
@click.option("--due-before", help="Objects that want to be seen to before this RFC 3339 instant.")
@click.option("--limit", "most", type=click.IntRange(1), default=50, show_default=True, help="At most so many.")
@asked
def objects(most: int, server: Client, out: Out, **words: Any) -> None:
    """List the objects that items are about, and how their gates stand."""
    found = server.objects.list(**words, page_size=min(most, 200))
    out.table(_object_columns(out), islice(found, most), _object_name)


@click.command()
@click.argument("object_type", metavar="TYPE", type=_TYPES)
@click.argument("object_id", metavar="ID")
@click.option("--persona", type=_GATES, help="What the gate persona says.")
@click.option("--cognition", type=_GATES, help="What the gate cognition says.")
@_REASON
@asked
def gate(object_type: Any, object_id: str, reason: str, server: Client, out: Out, **gates: Any) -> None:
    """Set the gates of an object, or show it. Items of a risky object wait while a gate says defer or block."""
    said = {name: value for name, value in gates.items() if value is not None}
    if said:
        found = server.objects.put(object_type, object_id, gates=said, reason=reason)
    else:
        found = server.objects.get(object_type, object_id)
    out.row(_object_columns(out), found, _object_name)


def _count(text: str, field: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise InvalidArgument.of(field, f"{text!r} is no number of items; write 8, or {_NO_LIMIT} to lift the limit")
    return int(text)


def _rate(text: str, field: str) -> tuple[int, str]:
    count, _, span = text.partition("/")
    if not count.isdecimal() or int(count) < 1:
        raise InvalidArgument.of(field, f"{text!r} is no rate; write 10/1s, or {_NO_LIMIT} to lift the limit")
    return int(count), span or "1s"


def _show(out: Out, found: QueueSettings) -> None:
    columns: list[Column[QueueSettings]] = [
        Column("queue", lambda one: Cell(one.queue, "bold")),
        Column("state", lambda one: Cell("paused", "yellow") if one.paused else Cell("open", "green")),
        Column("concurrency", lambda one: _shown("", one.concurrency, one.rate)),
        Column("key", lambda one: _shown("of each key ", one.key_concurrency, one.key_rate)),
        Column("reason", lambda one: one.reason, is_text=True),
    ]
    out.row(columns, found, lambda one: one.queue)


def _shown(whose: str, concurrency: int | None, rate: QueueRate | None) -> str:
    parts = [] if concurrency is None else [f"{concurrency} at once"]
    parts += [] if rate is None else [f"{rate.count} in {span_text(rate.per_sec * 1000)}"]
    return whose + ", ".join(parts) if parts else ""


def _object_columns(out: Out) -> list[Column[GovernedObject]]:
    return [
        Column("type", lambda one: one.object_type),
        Column("id", lambda one: Cell(one.object_id, "bold")),
        Column("risk", lambda one: one.risk_tier),
        Column("certainty", lambda one: one.epistemic_state),
        Column("gates", lambda one: ", ".join(f"{gate} {said}" for gate, said in sorted(one.gates.items()))),
        Column("held back", lambda one: Cell("held back", "red") if one.held_back else ""),
        Column("next", lambda one: out.instant(one.next_action_at)),
    ]


def _object_name(one: GovernedObject) -> str:
    return f"{one.object_type}/{one.object_id}"
