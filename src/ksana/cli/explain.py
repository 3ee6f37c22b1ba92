"""`ksana explain`: when a cron expression fires, in words and instants, without a server."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, tzinfo
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import click

from ksana.cli.problems import BAD_ANSWER
from ksana.domain.errors import InvalidArgument

if TYPE_CHECKING:
    from ksana.domain.explain import Explanation
    from ksana.domain.words import Language

_FIELD_NAMES = {
    5: "minute hour day month weekday",
    6: "second minute hour day month weekday",
}
_WIDTH = 110
_FEW = 6


@click.command()
@click.argument("expr")
@click.option("--tz", default="UTC", show_default=True, help="IANA zone or offset the expression is read in.")
@click.option("--from", "from_text", help="Instant to start from, RFC 3339 (default: now).")
@click.option("-n", "count", type=click.IntRange(1, 1000), default=5, show_default=True, help="How many fires to show.")
@click.option("--lang", "language", type=click.Choice(["en", "zh"]), help="One language only (default: both).")
@click.option("-q", "--quiet", "is_quiet", is_flag=True, help="Print the instants only.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def explain(
    expr: str,
    tz: str,
    from_text: str | None,
    count: int,
    language: Language | None,
    is_quiet: bool,
    as_json: bool,
) -> None:
    """Say what EXPR means, when it fires next, and what about it may surprise."""
    from ksana.domain.explain import explain as explain_cron
    from ksana.domain.times import format_instant, parse_instant, zone

    from_at = datetime.now(UTC) if from_text is None else parse_instant(from_text, "--from")
    where = zone(tz, "--tz")
    try:
        answer = explain_cron(expr, where, from_at, count, tz)
    except InvalidArgument as error:
        if not any("never fires" in problem.message for problem in error.problems):
            raise
        if as_json:
            _print_json({"normalized": None, "next": [], "lints": [{"code": "never_fires", "message": str(error)}]})
        click.echo(f"ksana: {error}", err=True)
        raise SystemExit(BAD_ANSWER) from None
    if as_json:
        _print_json(_document(answer, where))
    elif is_quiet:
        for at in answer.next:
            click.echo(format_instant(at, "seconds"))
    else:
        _show(expr, answer, where, from_at, language)


def _show(expr: str, answer: Explanation, where: tzinfo, from_at: datetime, language: Language | None) -> None:
    given = expr.split()
    if len(given) in _FIELD_NAMES:
        read = f"{len(given)} fields, read as  {_FIELD_NAMES[len(given)]}"
    else:
        read = f"{expr}, an alias"
    click.echo(f"  {read}   → stored as  {answer.normalized}")
    words = answer.words
    click.echo(f"  {words.in_language(language)}" if language else f"  {words.en}      {words.zh}")
    for line in _lint_lines([lint.message.in_language(language or "en") for lint in answer.lints]):
        click.echo(f"  {line}", err=True)
    for line in _fire_lines(answer, where, from_at, language or "en"):
        click.echo(f"  {line}")


def _lint_lines(messages: list[str]) -> list[str]:
    """Short ones beside each other."""
    line = (" " * 8).join(f"! {message}" for message in messages)
    return [line] if line and len(line) <= _WIDTH else [f"! {message}" for message in messages]


def _fire_lines(answer: Explanation, where: tzinfo, from_at: datetime, language: Language) -> list[str]:
    if not answer.fires:
        return ["nothing more until the end of the calendar"]
    clocks = [fire.at.astimezone(where) for fire in answer.fires]
    first = f"next  {_clock(clocks[0])}   in {span_words(answer.fires[0].at - from_at)}"
    if len(clocks) <= _FEW and not any(fire.dst for fire in answer.fires):
        later = ", ".join(_later(clock, before) for before, clock in pairwise(clocks))
        return [f"{first}      (then {later})" if later else first]
    notes = [f"   ! {fire.dst.in_language(language)}" if fire.dst is not None else "" for fire in answer.fires]
    return [first + notes[0], *(f"then  {_clock(at)}{note}" for at, note in zip(clocks[1:], notes[1:], strict=True))]


def _later(clock: datetime, before: datetime) -> str:
    """A later fire, with as much of its date as has changed."""
    time = f"{clock:%H:%M:%S}" if clock.second else f"{clock:%H:%M}"
    if clock.date() == before.date():
        return time
    return f"{clock:%a} {time}" if clock - before < timedelta(days=7) else f"{clock:%a %Y-%m-%d} {time}"


def span_words(span: timedelta) -> str:
    """A span as people say it: its two largest units."""
    seconds = int(span.total_seconds())
    parts = []
    for size, name in ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s")):
        whole, seconds = divmod(seconds, size)
        if whole:
            parts.append(f"{whole} {name}")
    return " ".join(parts[:2]) or "less than 1 s"


def _clock(local: datetime) -> str:
    from ksana.cli.output import offset_text

    seconds = f":{local:%S}" if local.second else ""
    return f"{local:%a %Y-%m-%d %H:%M}{seconds} {offset_text(local)}"


def _document(answer: Explanation, where: tzinfo) -> dict[str, Any]:
    from ksana.domain.times import format_instant

    return {
        "normalized": answer.normalized,
        "words": {"en": answer.words.en, "zh": answer.words.zh},
        "next": [format_instant(at, "seconds") for at in answer.next],
        "fires": [
            {
                "at": format_instant(fire.at, "seconds"),
                "local": fire.at.astimezone(where).isoformat(timespec="seconds"),
                "dst": None if fire.dst is None else {"en": fire.dst.en, "zh": fire.dst.zh},
            }
            for fire in answer.fires
        ],
        "lints": [
            {"code": lint.code, "message": {"en": lint.message.en, "zh": lint.message.zh}} for lint in answer.lints
        ],
    }


def _print_json(value: dict[str, Any]) -> None:
    import json

    click.echo(json.dumps(value, ensure_ascii=False))
