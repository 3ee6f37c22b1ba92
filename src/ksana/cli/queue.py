"""`ksana queue`: how queues stand, and the work of a worker by hand."""

from __future__ import annotations

import socket
from itertools import islice
from typing import TYPE_CHECKING, Any

import click

from ksana.cli.asking import asked, confirmed
from ksana.cli.governing import gate, limit, objects, pause, resume
from ksana.cli.groups import Nouns
from ksana.cli.jobs import DRY_RUN, YES
from ksana.cli.looks import first_line, json_text, span_text
from ksana.cli.output import Cell, Column, Out
from ksana.cli.problems import PartlyFailed
from ksana.cli.purging import purge
from ksana.cli.values import json_of
from ksana.domain.errors import InvalidArgument

if TYPE_CHECKING:
    from ksana.client import Client, Item
    from ksana.client.queues import ErrorGroup, QueueStats

_MOST_GROUPS = 200
_STYLES = {"succeeded": "green", "failed": "red", "dead_letter": "red", "running": "blue"}


@click.group(cls=Nouns)
def queue() -> None:
    """See how queues stand; enqueue, pull, acknowledge and put back items; pause, limit and purge queues."""


@queue.command()
@asked
def stats(server: Client, out: Out) -> None:
    """Show every queue: what waits, for how long, what workers hold, what is dead."""
    found = server.queues.stats()
    columns: list[Column[QueueStats]] = [
        Column("queue", lambda one: Cell(one.queue, "bold")),
        Column("queued", lambda one: str(one.queued)),
        Column("due", lambda one: str(one.due)),
        Column("lag", lambda one: span_text(one.lag_seconds * 1000)),
        Column("running", lambda one: str(one.running)),
        Column("dead", lambda one: Cell(str(one.dead_letters), "red" if one.dead_letters else "")),
    ]
    if out.as_json:
        out.json(found)
    elif out.table(columns, found.queues, lambda one: one.queue) == 0:
        out.say("no queue has ever had an item; `ksana queue enqueue NAME '{…}'` makes one")


@queue.command()
@click.argument("name", metavar="QUEUE")
@click.argument("payload", required=False)
@click.option("--type", "type_", help="What kind of item it is.")
@click.option("--at", help="Due at this RFC 3339 instant (default: now).")
@click.option("--delay", help="Due after so long.")
@click.option("--priority", type=click.Choice(["low", "medium", "high"]), default="medium", show_default=True)
@click.option("--max-attempts", type=click.IntRange(1, 1000), default=3, show_default=True)
@click.option("--idempotency-key", help="What has the same key is there once.")
@asked
def enqueue(
    name: str,
    payload: str | None,
    type_: str | None,
    at: str | None,
    delay: str | None,
    priority: Any,
    max_attempts: int,
    idempotency_key: str | None,
    server: Client,
    out: Out,
) -> None:
    """Put an item into QUEUE. PAYLOAD is JSON; @FILE reads a file, - stdin."""
    item = server.queue.enqueue(
        name,
        json_of(payload, "PAYLOAD"),
        type=type_,
        run_at=at,
        delay=delay,
        priority=priority,
        max_attempts=max_attempts,
        idempotency_key=idempotency_key,
    )
    _show(out, item)


@queue.command()
@click.argument("name", metavar="QUEUE")
@click.option("--limit", type=click.IntRange(1, 1000), default=1, show_default=True, help="At most so many.")
@click.option("--worker", help="Who you are (default: cli@ and the name of this machine).")
@click.option("--lease", help="For how long they are yours (default: 15m).")
@click.option("--wait", default="0s", help="Wait up to 60s for something to come due.")
@asked
def pull(name: str, limit: int, worker: str | None, lease: str | None, wait: str, server: Client, out: Out) -> None:
    """Take what is due from QUEUE. Acknowledge or fail it with the lease token it came with."""
    who = worker or f"cli@{socket.gethostname()}"
    items = server.queue.pull(name, who, limit=limit, lease=lease, wait=wait)
    columns = [*_columns(), Column[Any]("lease token", lambda item: item.lease_token or "")]
    if out.table(columns, items, lambda item: item.job_id) == 0:
        out.say("nothing is due")


@queue.command()
@click.argument("item", metavar="ITEM")
@click.option("--output", "output_text", help="JSON that is handed on; @FILE reads a file.")
@click.option("--lease-token", help="As the pull gave it: then a lease that is lost is told.")
@click.option("--next-action-at", help="When the next action is due, for items about objects.")
@asked
def ack(
    item: str,
    output_text: str | None,
    lease_token: str | None,
    next_action_at: str | None,
    server: Client,
    out: Out,
) -> None:
    """Say that ITEM is done."""
    given = {} if output_text is None else {"output": json_of(output_text, "--output")}
    _show(out, server.queue.ack(item, next_action_at=next_action_at, lease_token=lease_token, **given))


@queue.command()
@click.argument("item", metavar="ITEM")
@click.argument("error")
@click.option("--retry-after", default="0s", show_default=True, help="Let it come due again after so long.")
@click.option("--no-retry", "is_final", is_flag=True, help="End it without another try.")
@click.option("--lease-token", help="As the pull gave it: then a lease that is lost is told.")
@asked
def fail(
    item: str, error: str, retry_after: str, is_final: bool, lease_token: str | None, server: Client, out: Out
) -> None:
    """Say that ITEM could not be done, and why."""
    done = server.queue.fail(item, error, retry_after=retry_after, retryable=not is_final, lease_token=lease_token)
    _show(out, done)


@queue.command("items")
@click.argument("name", metavar="[QUEUE]", required=False)
@click.option("--status", type=click.Choice(["queued", "running", "succeeded", "failed", "dead_letter"]))
@click.option("--limit", type=click.IntRange(1), default=50, show_default=True, help="At most so many.")
@asked
def list_items(name: str | None, status: str | None, limit: int, server: Client, out: Out) -> None:
    """List items, newest first."""
    found = server.queues.items(queue=name, status=status, page_size=min(limit, 200))
    out.table(_columns(), islice(found, limit), lambda item: item.job_id)


@queue.command()
@click.argument("name", metavar="[QUEUE]", required=False)
@click.option("--error", help="Any part of the error.")
@click.option("--by-error", "is_grouped", is_flag=True, help="Count those with the same error.")
@click.option("--limit", type=click.IntRange(1), default=50, show_default=True, help="At most so many.")
@asked
def dead(name: str | None, error: str | None, is_grouped: bool, limit: int, server: Client, out: Out) -> None:
    """List dead letters, or what they died of."""
    if is_grouped:
        columns: list[Column[ErrorGroup]] = [
            Column("queue", lambda group: group.queue),
            Column("count", lambda group: str(group.count)),
            Column("last", lambda group: out.instant(group.last_at)),
            Column("error", lambda group: first_line(group.error), is_text=True),
        ]
        found_groups = server.queues.groups(queue=name, limit=_MOST_GROUPS)
        wanted = [group for group in found_groups if (error or "") in group.error]
        out.table(columns, wanted[:limit], lambda group: group.job_id)
        return
    found = server.queues.dead_letters(queue=name, error=error, page_size=min(limit, 200))
    out.table(_columns(), islice(found, limit), lambda item: item.job_id)


@queue.command()
@click.argument("items", metavar="[ITEM]...", nargs=-1)
@click.option("--queue", "name", help="Dead letters of this queue.")
@click.option("--error", help="Dead letters with this in their error.")
@click.option("--limit", type=click.IntRange(1, 1000), default=100, show_default=True, help="The oldest so many.")
@click.option("--rate", type=click.FloatRange(0.001), help="Let them come due one after the other, so many a second.")
@YES
@DRY_RUN
@asked
def redrive(
    items: tuple[str, ...],
    name: str | None,
    error: str | None,
    limit: int,
    rate: float | None,
    is_yes: bool,
    is_dry: bool,
    server: Client,
    out: Out,
) -> None:
    """Put dead letters back, with all their attempts before them."""
    if bool(items) == bool(name or error):
        raise InvalidArgument.of("ITEM", "name items by their ids, or say --queue or --error")
    words: dict[str, Any] = {"ids": items} if items else {"queue": name, "error": error, "limit": limit}
    if not is_dry and not items:
        counted = server.queues.redrive(**words, dry_run=True).count
        confirmed(out, is_yes, f"Put {counted} dead letter(s) back?")
    done = server.queues.redrive(**words, rate=rate, dry_run=is_dry)
    columns = [
        Column[Any]("status", lambda one: str(one["status"])),
        Column[Any]("id", lambda one: (one.get("job") or {}).get("job_id", "")),
        Column[Any]("error", lambda one: (one.get("error") or {}).get("message", ""), is_text=True),
    ]
    out.table(columns, done.results, lambda one: (one.get("job") or {}).get("job_id", ""))
    failed = sum(one["status"] >= 400 for one in done.results)
    out.say(f"{'would put' if is_dry else 'put'} {done.count} back")
    if failed:
        raise PartlyFailed(f"{failed} of {len(done.results)} could not be put back")


for _command in (pause, resume, limit, purge, objects, gate):
    queue.add_command(_command)


def _columns() -> list[Column[Item]]:
    return [
        Column("id", lambda item: item.job_id),
        Column("queue", lambda item: item.queue),
        Column("status", lambda item: Cell(item.status, _STYLES.get(item.status, ""))),
        Column("attempts", lambda item: f"{item.attempt}/{item.max_attempts}"),
        Column("payload", lambda item: json_text(item.payload), is_text=True),
        Column("error", lambda item: first_line(item.last_error or ""), is_text=True),
    ]


def _show(out: Out, item: Item) -> None:
    out.row(_columns(), item, lambda one: one.job_id)
