"""`ksana runs`: find runs, see what happened, and act on them."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, Literal

import click

from ksana.cli.asking import asked
from ksana.cli.bulk import Filtered, done_to
from ksana.cli.choosing import filter_words, query_words, run_filters
from ksana.cli.finding import run_id
from ksana.cli.groups import Nouns
from ksana.cli.jobs import DRY_RUN, YES
from ksana.cli.looks import delay_text, first_line, json_text, run_columns, span_text, state_cell
from ksana.cli.output import Cell, Column, Out
from ksana.cli.problems import BAD_ANSWER
from ksana.cli.waiting import WAIT, ended
from ksana.domain.errors import InvalidArgument

if TYPE_CHECKING:
    from ksana.client import Attempt, Client, Run


@click.group(cls=Nouns)
def runs() -> None:
    """Find runs, see what happened, and act on them."""


@runs.command("list")
@run_filters
@click.option("--limit", type=click.IntRange(1), default=50, show_default=True, help="At most so many.")
@asked
def list_runs(server: Client, out: Out, limit: int, **words: Any) -> None:
    """List runs, newest first."""
    found = server.runs.list(**query_words(server, words), page_size=min(limit, 200))
    if out.table(run_columns(out), islice(found, limit), lambda run: run.id) == limit:
        out.say(f"there may be more; say --limit {limit * 10}")


@runs.command()
@click.argument("run", metavar="RUN")
@asked
def show(run: str, server: Client, out: Out) -> None:
    """Show a run and every attempt: what was sent, what came back."""
    import msgspec

    found = server.runs.get(run_id(run))
    attempts = server.runs.attempts(found)
    if out.as_json:
        out.json({**msgspec.to_builtins(found), "attempts": msgspec.to_builtins(attempts)})
        return
    out.fields(_fields(found, out), found, found.id)
    if attempts and not out.is_quiet:
        if out.is_terminal:
            click.echo()
        out.table(_attempt_columns(out), attempts, lambda attempt: attempt.number)


def _fields(run: Run, out: Out) -> list[tuple[str, str | Cell]]:
    reason = "" if run.reason is None else str(run.reason)
    return [
        ("id", str(run.id)),
        ("job", f"{run.job_name or run.kind}" + ("" if run.job_id is None else f" ({run.job_id})")),
        ("state", state_cell(run.state, out)),
        ("reason", reason),
        ("error", run.error),
        ("trigger", str(run.trigger)),
        ("planned", out.instant(run.planned_at)),
        ("delay", delay_text(run)),
        ("started", out.instant(run.started_at)),
        ("ended", out.instant(run.ended_at)),
        ("took", span_text(run.duration_ms)),
        ("attempts", str(run.attempt)),
        ("input", json_text(run.input)),
    ]


def _attempt_columns(out: Out) -> list[Column[Attempt]]:
    return [
        Column("attempt", lambda one: str(one.number)),
        Column("verdict", lambda one: Cell(str(one.verdict), "green" if one.verdict == "success" else "red")),
        Column("code", lambda one: "" if one.code is None else str(one.code)),
        Column("started", lambda one: out.instant(one.started_at)),
        Column("took", lambda one: span_text(one.duration_ms)),
        Column("request", lambda one: "" if one.request is None else one.request.line),
        Column("error", lambda one: one.error, is_text=True),
        Column("response", _response, is_text=True),
    ]


def _response(attempt: Attempt) -> str:
    answer = attempt.response
    if answer is None:
        return json_text(attempt.result)
    return answer.body.text if answer.body.text is not None else f"{answer.body.bytes} bytes"


@runs.command()
@click.argument("run", metavar="RUN")
@click.option("--for", "limit", default="1h", show_default=True, help="Give up after so long.")
@asked
def tail(run: str, limit: str, server: Client, out: Out) -> None:
    """Follow a run to its end. Exits with 0 only if it succeeds."""
    from ksana.cli.following import follow_run

    if not follow_run(server, out, run_id(run), limit):
        raise SystemExit(BAD_ANSWER)


def _act(verb: Literal["cancel", "retry"], help: str, *, is_asked: bool) -> click.Command:
    @click.command(verb, help=help)
    @click.argument("ids", metavar="[RUN]...", nargs=-1)
    @run_filters
    @YES
    @DRY_RUN
    @WAIT
    @asked
    def command(
        ids: tuple[str, ...],
        is_yes: bool,
        is_dry: bool,
        wait: str | None,
        server: Client,
        out: Out,
        **words: Any,
    ) -> None:
        if bool(ids) == any(words.values()):
            raise InvalidArgument.of("RUN", "name runs by their ids, or filter them: --job, --state, --since, --tag …")
        if wait is not None and len(ids) != 1:
            raise InvalidArgument.of("--wait", "goes with one run that is named; `ksana tail` follows many")
        if not ids:
            many = Filtered(server, out, verb, "run", filter_words(server, words))
            many.ask_and_carry_out(is_yes or not is_asked, is_dry)
            return
        found = [server.runs.get(run_id(text)) for text in ids]
        if is_dry:
            out.table(run_columns(out), found, lambda run: run.id)
            out.say(f"would {verb} {len(found)} run(s); nothing was done")
            return
        done_to(out, found, lambda run: _do(server, out, verb, run, wait), lambda run: f"run {run.id}")

    return command


def _do(server: Client, out: Out, verb: Literal["cancel", "retry"], run: Run, wait: str | None) -> None:
    done = server.runs.cancel(run) if verb == "cancel" else server.runs.retry(run)
    if wait is None:
        out.row(run_columns(out), done, lambda one: one.id)
    else:
        ended(server, out, done, wait)


runs.add_command(_act("cancel", "Cancel runs that are not over; filtered ones after asking.", is_asked=True))
runs.add_command(_act("retry", "Try runs again that ended without success.", is_asked=False))


@runs.command()
@click.argument("run", metavar="RUN")
@click.option("--reason", default="", help="Why, for whoever looks at it later.")
@asked
def complete(run: str, reason: str, server: Client, out: Out) -> None:
    """Take a run as done by hand."""
    done = server.runs.complete(run_id(run), reason=reason)
    out.row(run_columns(out), done, lambda one: one.id)


@runs.command()
@click.argument("run", metavar="RUN")
@click.argument("other", metavar="[OTHER]", required=False)
@asked
def diff(run: str, other: str | None, server: Client, out: Out) -> None:
    """Compare a run with OTHER, or with the last success of its job. Exits with 1 if they differ."""
    query = {"with": None if other is None else run_id(other)}
    found = server.ask("GET", f"/api/v2/runs/{run_id(run)}/diff", query=query)
    columns: list[Column[dict[str, Any]]] = [
        Column("what", lambda change: change["path"]),
        Column("left", lambda change: Cell(first_line(_shown(change["left"])), "red"), is_text=True),
        Column("right", lambda change: Cell(first_line(_shown(change["right"])), "green"), is_text=True),
    ]
    if out.as_json:
        out.json(found)
    else:
        out.table(columns, found["changes"], lambda change: change["path"])
    if found["changes"]:
        raise SystemExit(BAD_ANSWER)


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else json_text(value)
