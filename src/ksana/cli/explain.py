"""`ksana explain`: when a cron expression fires, without a server."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import click

from ksana.cli.problems import BAD_ANSWER
from ksana.domain.errors import InvalidArgument


@click.command()
@click.argument("expr")
@click.option("--tz", default="UTC", show_default=True, help="IANA zone or offset the expression is read in.")
@click.option("--from", "from_text", help="Instant to start from, RFC 3339 (default: now).")
@click.option("-n", "count", type=click.IntRange(1, 1000), default=5, show_default=True, help="How many fires to show.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def explain(expr: str, tz: str, from_text: str | None, count: int, as_json: bool) -> None:
    """Show when EXPR fires next."""
    from ksana.domain.explain import explain as explain_cron
    from ksana.domain.times import format_instant, parse_instant, zone

    from_at = datetime.now(UTC) if from_text is None else parse_instant(from_text, "--from")
    where = zone(tz, "--tz")
    try:
        answer = explain_cron(expr, where, from_at, count)
    except InvalidArgument as error:
        if not any("never fires" in problem.message for problem in error.problems):
            raise
        click.echo(f"ksana: {error}", err=True)
        raise SystemExit(BAD_ANSWER) from None
    if as_json:
        fires = [format_instant(fire, "seconds") for fire in answer.next]
        click.echo(json.dumps({"normalized": answer.normalized, "next": fires}))
        return
    click.echo(f"{expr}  is read as  {answer.normalized}  ({tz})")
    for note in answer.notes:
        click.echo(f"! {note}", err=True)
    for fire in answer.next:
        local = fire.astimezone(where)
        click.echo(f"  {local:%a %Y-%m-%d %H:%M:%S %z}   {format_instant(fire, 'seconds')}")
