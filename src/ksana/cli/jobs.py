"""`ksana jobs`: look at jobs, and tell them what to do."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from ksana.cli.applying import apply, diff
from ksana.cli.asking import asked, confirmed
from ksana.cli.bulk import Filtered, done_to
from ksana.cli.finding import find_job, job_names
from ksana.cli.groups import Nouns
from ksana.cli.looks import job_columns, run_columns, schedule_text, state_cell
from ksana.cli.making import create, duplicate, edit, export
from ksana.cli.output import Column, Out
from ksana.cli.values import json_of
from ksana.cli.waiting import WAIT, ended
from ksana.domain.errors import InvalidArgument

if TYPE_CHECKING:
    from ksana.client import Client, Job
    from ksana.client.results import Fire

_FILTERS = (
    click.option("--name", default="", help="Any part of the name."),
    click.option("--tag", help="Jobs with this tag."),
    click.option("--kind", help="Jobs with this kind of target."),
    click.option("--surface", help="Jobs made through this surface."),
)
YES = click.option("-y", "--yes", "is_yes", is_flag=True, help="Do not ask.")
DRY_RUN = click.option("--dry-run", "is_dry", is_flag=True, help="Only print what would be done.")


def filters(function: Callable[..., Any]) -> Callable[..., Any]:
    for option in reversed(_FILTERS):
        function = option(function)
    return function


@click.group(cls=Nouns)
def jobs() -> None:
    """Look at jobs, make, change and run them."""


@jobs.command("list")
@filters
@click.option("--enabled/--paused", "enabled", default=None, help="Only those that are enabled, or paused.")
@click.option("--sort", help="id, name, updated_at or next_fire_at; with - in front turned round.")
@click.option("--limit", type=click.IntRange(1), help="At most so many.")
@asked
def list_jobs(server: Client, out: Out, limit: int | None, **words: Any) -> None:
    """List jobs, all of them unless filtered."""
    from itertools import islice

    count = out.table(job_columns(out), islice(server.jobs.list(**words), limit), lambda job: job.id)
    if count == 0:
        out.say("no jobs; `ksana jobs create NAME --http 'GET https://…' --every 5m` makes one")


@jobs.command()
@click.argument("job", shell_complete=job_names)
@asked
def show(job: str, server: Client, out: Out) -> None:
    """Show a job: what it does, when, and how it fared."""
    from ksana.cli.looks import json_text
    from ksana.cli.planning import shown_tags

    found = find_job(server, job)
    last = found.last_run
    out.fields(
        [
            ("id", str(found.id)),
            ("name", found.name),
            ("description", found.description),
            ("target", f"{found.target.kind} {json_text(found.target.config)}"),
            ("schedule", schedule_text(found.schedule, out)),
            ("words", _words(found, out)),
            ("enabled", "yes" if found.enabled else f"no, paused {out.instant(found.paused_at)}".rstrip()),
            ("until", out.instant(found.paused_until)),
            ("reason", found.pause_reason),
            ("next", out.instant(found.next_fire_at)),
            ("last", "" if last is None else state_cell(last.state, out)),
            ("run", "" if last is None else str(last.id)),
            ("error", "" if last is None else last.error),
            ("retry", _retry_text(found)),
            ("timeout", found.timeouts.total),
            ("queue", found.queue),
            ("tags", ", ".join(shown_tags(found.tags))),
            ("version", str(found.version)),
        ],
        found,
        found.id,
    )


def _retry_text(job: Job) -> str:
    retry = job.retry
    if retry.max_attempts == 1:
        return "none"
    return f"{retry.max_attempts} attempts in all, {retry.strategy} pauses from {retry.initial_delay} on"


def _words(job: Job, out: Out) -> str:
    words = job.schedule_words
    return "" if words is None else words.zh if out.language == "zh" else words.en


def _is_filtered(names: tuple[str, ...], words: dict[str, Any]) -> bool:
    """Whether jobs are meant that filters find; InvalidArgument if none are meant, or others too."""
    is_filtered = any(words.values())
    if names and is_filtered:
        raise InvalidArgument.of("JOB", "name jobs or filter them, not both")
    if not names and not is_filtered:
        raise InvalidArgument.of("JOB", "name one by id or name, or say --tag, --name, --kind or --surface")
    return is_filtered


def _named(server: Client, out: Out, names: tuple[str, ...], is_dry: bool, what: str) -> list[Job]:
    """The jobs to do it to, by their names: none if it is only tried, and then they are shown."""
    found = [find_job(server, name) for name in names]
    if not is_dry:
        return found
    out.table(job_columns(out), found, lambda job: job.id)
    out.say(f"would {what} {len(found)} job(s); nothing was done")
    return []


@jobs.command()
@click.argument("names", metavar="[JOB]...", nargs=-1, shell_complete=job_names)
@filters
@click.option("--until", help="Resume by itself then: an RFC 3339 instant, or so long from now: 2h.")
@click.option("--reason", default="", help="Why, for whoever looks at it later.")
@DRY_RUN
@asked
def pause(
    names: tuple[str, ...], until: str | None, reason: str, is_dry: bool, server: Client, out: Out, **words: Any
) -> None:
    """Pause jobs: plan no more slots and cancel what has not started.

    A paused job that is named is told anew until when; without --until it stays paused. Those that a filter finds
    paused stay as they are.
    """
    if _is_filtered(names, words):
        # Only those it changes anything for; the others are as they should be.
        many = Filtered(server, out, "pause", "job", words | {"enabled": True}, reason=reason, until=until)
        many.ask_and_carry_out(True, is_dry)
        return

    def act(job: Job) -> None:
        out.row(job_columns(out), server.jobs.pause(job, until=until, reason=reason), lambda one: one.id)

    done_to(out, _named(server, out, names, is_dry, "pause"), act, lambda job: job.name)


@jobs.command()
@click.argument("names", metavar="[JOB]...", nargs=-1, shell_complete=job_names)
@filters
@DRY_RUN
@asked
def resume(names: tuple[str, ...], is_dry: bool, server: Client, out: Out, **words: Any) -> None:
    """Resume jobs, from their next slot on."""
    if _is_filtered(names, words):
        Filtered(server, out, "resume", "job", words | {"enabled": False}).ask_and_carry_out(True, is_dry)
        return

    def act(job: Job) -> None:
        out.row(job_columns(out), server.jobs.resume(job), lambda one: one.id)

    done_to(out, _named(server, out, names, is_dry, "resume"), act, lambda job: job.name)


@jobs.command("run")
@click.argument("names", metavar="[JOB]...", nargs=-1, shell_complete=job_names)
@filters
@click.option("--input", "input_text", help="JSON for the target; @FILE reads a file, - stdin.")
@YES
@DRY_RUN
@WAIT
@asked
def run_now(
    names: tuple[str, ...],
    input_text: str | None,
    is_yes: bool,
    is_dry: bool,
    wait: str | None,
    server: Client,
    out: Out,
    **words: Any,
) -> None:
    """Run jobs now, beside their schedules; filtered ones after asking. With --wait, exit with 0 only if it
    succeeds."""
    if _is_filtered(names, words):
        if input_text is not None:
            raise InvalidArgument.of("--input", "goes with jobs that are named")
        if wait is not None:
            raise InvalidArgument.of("--wait", "goes with one job that is named; `ksana tail` follows many")
        Filtered(server, out, "run", "job", words).ask_and_carry_out(is_yes, is_dry)
        return
    if wait is not None and len(names) > 1:
        raise InvalidArgument.of("--wait", "goes with one job; `ksana tail` follows many")
    given = json_of(input_text, "--input")

    def act(job: Job) -> None:
        run = server.jobs.trigger(job, input=given)
        if wait is None:
            out.row(run_columns(out), run, lambda one: one.id)
        else:
            ended(server, out, run, wait)

    done_to(out, _named(server, out, names, is_dry, "run"), act, lambda job: job.name)


@jobs.command()
@click.argument("names", metavar="[JOB]...", nargs=-1, shell_complete=job_names)
@filters
@YES
@DRY_RUN
@asked
def delete(names: tuple[str, ...], is_yes: bool, is_dry: bool, server: Client, out: Out, **words: Any) -> None:
    """Delete jobs. What is under way may finish, and their runs stay."""
    if _is_filtered(names, words):
        Filtered(server, out, "delete", "job", words).ask_and_carry_out(is_yes, is_dry)
        return
    found = _named(server, out, names, is_dry, "delete")
    if not found:
        return
    few = ", ".join(job.name for job in found[:5]) + (f" and {len(found) - 5} more" if len(found) > 5 else "")
    confirmed(out, is_yes, f"Delete {few}?")

    def act(job: Job) -> None:
        server.jobs.delete(job)
        out.row([Column("id", lambda one: str(one.id)), Column("name", lambda one: one.name)], job, lambda one: one.id)

    done_to(out, found, act, lambda job: job.name)


@jobs.command("next")
@click.argument("job", required=False, shell_complete=job_names)
@click.option("-n", "count", type=click.IntRange(1, 100), default=10, show_default=True, help="How many.")
@asked
def next_fires(job: str | None, count: int, server: Client, out: Out) -> None:
    """Show what fires next: of one job, or of all jobs the one next fire of each."""
    if job is None:
        due = server.jobs.list(enabled=True, sort="next_fire_at", page_size=count)
        columns = [
            Column[Any]("next", lambda one: out.instant(one.next_fire_at)),
            Column[Any]("id", lambda one: str(one.id)),
            Column[Any]("name", lambda one: one.name),
        ]
        from itertools import islice

        out.table(columns, islice((one for one in due if one.next_fire_at is not None), count), lambda one: one.id)
        return
    found = find_job(server, job)
    preview = _preview(server, found, count)
    columns = [
        Column[Any]("at", lambda fire: out.instant(fire.at)),
        Column[Any]("local", lambda fire: fire.local),
        Column[Any]("dst", lambda fire: "" if fire.dst is None else getattr(fire.dst, out.language), is_text=True),
    ]
    out.table(columns, preview.fires, lambda fire: out.instant(fire.at))


def _preview(server: Client, job: Job, count: int) -> Any:
    """The slots of a job from now on; jitter only delays them."""
    from ksana.client.results import Cron, Every, Once

    match job.schedule:
        case None:
            raise InvalidArgument.of("JOB", f"{job.name} has no schedule; it runs when told, by `ksana jobs run`")
        case Cron(expr=expr, timezone=tz, start_at=start_at, end_at=end_at):
            return _asked(server, count, cron=expr, tz=tz, start_at=start_at, end_at=end_at)
        case Every(every=every, origin_at=origin_at, start_at=start_at, end_at=end_at):
            return _asked(server, count, every=every, start_at=start_at or origin_at, end_at=end_at)
        case Once(run_at=run_at):
            return _asked(server, count, at=run_at)


def _asked(server: Client, count: int, **words: Any) -> Any:
    return server.schedules.preview(count=count, **{name: value for name, value in words.items() if value is not None})


@jobs.command()
@click.argument("job", shell_complete=job_names)
@click.option("--since", default="24h", show_default=True, help="An instant, or how long ago.")
@click.option("--limit", type=click.IntRange(1, 1000), default=50, show_default=True, help="At most so many lines.")
@asked
def fires(job: str, since: str, limit: int, server: Client, out: Out) -> None:
    """Show the fire log of a job: what became of each planned instant, and why."""
    columns: list[Column[Fire]] = [
        Column("from", lambda fire: out.instant(fire.from_at)),
        Column("to", lambda fire: "" if fire.to_at == fire.from_at else out.instant(fire.to_at)),
        Column("count", lambda fire: str(fire.count)),
        Column("decision", lambda fire: fire.decision),
        Column("reason", lambda fire: "" if fire.reason is None else str(fire.reason)),
        Column("run", lambda fire: "" if fire.run_id is None else str(fire.run_id)),
    ]
    found = server.jobs.fires(find_job(server, job), since=since, limit=limit)
    out.table(columns, found, lambda fire: fire.run_id or "")


@jobs.command()
@click.argument("job", shell_complete=job_names)
@click.option("--since", required=True, help="From this instant, RFC 3339, or so long ago: 24h.")
@click.option("--until", default="0s", show_default=True, help="Up to this instant, or so long ago.")
@YES
@DRY_RUN
@asked
def backfill(job: str, since: str, until: str, is_yes: bool, is_dry: bool, server: Client, out: Out) -> None:
    """Run a job for slots of the past that have no run, at most 1,000 at once. How many is said first."""
    from ksana.client.asking import key_header, moment

    path = f"/api/v2/jobs/{find_job(server, job).id}/backfill"
    body = {"since": moment(since, "--since"), "until": moment(until, "--until")}
    found = server.ask("POST", path, {**body, "dry_run": True})
    if not is_dry and found["count"]:
        confirmed(out, is_yes, f"Run {job} for {found['count']} slot(s), the first at {found['sample'][0]}?")
        found = server.ask("POST", path, body, headers=key_header(None))
    shown = found["sample"] if is_dry else found["run_ids"]
    if out.as_json:
        out.json(found)
    else:
        for one in shown:
            click.echo(str(one))
    out.say(f"{'would make' if is_dry else 'made'} {found['count']} run(s)")


for _command in (create, edit, duplicate, export, apply, diff):
    jobs.add_command(_command)
