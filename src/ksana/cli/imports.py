"""`ksana import`: jobs from elsewhere. What would be made is shown first, and made when told."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ksana.cli.asking import connected, shown
from ksana.cli.groups import Nouns
from ksana.cli.options import settings_from, start_logging, store_options
from ksana.cli.output import Column, Out
from ksana.cli.problems import BAD_ANSWER
from ksana.cli.values import file_text, pairs_of
from ksana.domain.errors import StoreUnavailable

if TYPE_CHECKING:
    from ksana.cli.beat import Entry
    from ksana.cli.crontab import Line
    from ksana.config import Settings

_SURFACE = "v2"
_PAGE = 1000


@click.group("import", cls=Nouns)
def import_() -> None:
    """Take over jobs from elsewhere."""


@import_.command()
@click.argument("file", metavar="FILE|-")
@click.option("--dry-run", "is_dry", is_flag=True, help="Only show what would be made; needs no server.")
@click.option(
    "--url-map",
    "pairs",
    multiple=True,
    help="'TEXT=POST https://…': a command with this text calls that address; may be repeated.",
)
@click.option("--system", "has_users", is_flag=True, help="A crontab of the system, with a user before each command.")
@click.option("--timezone", default="UTC", show_default=True, help="Zone of lines without CRON_TZ or TZ.")
@click.option("--paused", "is_paused", is_flag=True, help="Make the jobs, but plan nothing yet.")
@click.option("--url", help="The server (KSANA_URL, else http://127.0.0.1:7100).")
@click.option("--key", "--token", "key", help="The API key (KSANA_KEY).")
@shown
def crontab(
    file: str,
    is_dry: bool,
    pairs: tuple[str, ...],
    has_users: bool,
    timezone: str,
    is_paused: bool,
    url: str | None,
    key: str | None,
    out: Out,
) -> None:
    """Make jobs of the curl lines of a crontab.

    Lines that start other programs are named, with what to do about them. A job whose name is taken already is left
    as it is, so the command may be repeated. Exits with 1 if a line cannot be taken over.
    """
    from ksana.cli.crontab import read_crontab
    from ksana.domain.times import zone

    zone(timezone, "--timezone")
    urls = pairs_of(pairs, "--url-map", "=")
    lines = read_crontab(file_text(file, "FILE"), timezone=timezone, has_users=has_users, url_map=urls)
    wanted = [line for line in lines if not line.refused]
    columns = [
        Column[Any]("name", lambda line: line.name),
        Column[Any]("schedule", lambda line: "{expr} ({timezone})".format(**line.body["schedule"])),
        Column[Any]("target", lambda line: "{method} {url}".format(**line.body["target"]["config"])),
    ]
    out.table(columns, wanted, lambda line: line.name, lambda line: line.body)
    if is_dry:
        out.say(f"would make {len(wanted)} job(s); nothing was made")
    elif wanted:
        made = _made_from_crontab(wanted, is_paused, url, key)
        out.say(f"made {made} of {len(wanted)} jobs; the others were there")
    for line in lines:
        for note in (*line.notes, *((line.refused,) if line.refused else ()), *((line.advice,) if line.advice else ())):
            out.say(f"line {line.number}: {note}")
    if len(wanted) < len(lines):
        sys.exit(BAD_ANSWER)


def _made_from_crontab(lines: list[Line], is_paused: bool, url: str | None, key: str | None) -> int:
    from ksana.client.asking import key_header

    with connected(url, key) as server:
        made = 0
        for line in lines:
            if any(job.name == line.name for job in server.jobs.list(name=line.name)):
                continue
            body = line.body | ({"enabled": False} if is_paused else {})
            server.ask("POST", "/api/v2/jobs", body, headers=key_header(None))
            made += 1
    return made


@import_.command()
@click.argument("app", metavar="MODULE:APP")
@click.option("--apply", "is_applied", is_flag=True, help="Make the jobs; without, they are only shown.")
@click.option("--broker", default="env:CELERY_BROKER_URL", show_default=True, help="Where the nodes find the broker.")
@click.option(
    "--backend",
    help="Where they find results, such as env:CELERY_RESULT_BACKEND; without, a task that is sent has succeeded.",
)
@click.option("--url", help="Make them on this server (KSANA_URL, with KSANA_KEY), not in a store.")
@click.option("--json", "as_json", is_flag=True, help="Print the jobs as JSON, one a line.")
@store_options
def celery(
    app: str,
    is_applied: bool,
    broker: str,
    backend: str | None,
    url: str | None,
    as_json: bool,
    config_path: Path | None,
    **flags: Any,
) -> None:
    """Show what the beat schedule of a Celery app would be as jobs that send its tasks.

    The app is imported, as `celery -A` does. A job whose name is taken already is left as it is, so the command may be
    repeated. Exits with 1 if an entry cannot be taken over.
    """
    from ksana.cli.beat import beat_entries

    where = {"broker": broker} if backend is None else {"broker": broker, "backend": backend}
    entries = beat_entries(app, where, Path.cwd())
    wanted = [entry for entry in entries if not entry.refused]
    for entry in wanted:
        click.echo(_line(entry, as_json))
    if is_applied and wanted:
        url = url or os.environ.get("KSANA_URL")
        made = _made_on_server(wanted, url) if url else _made_in_store(wanted, settings_from(config_path, **flags))
        click.echo(f"made {made} of {len(wanted)} jobs; the others were there", err=True)
    elif wanted:
        click.echo("nothing was made; say --apply to make them", err=True)
    _explain(entries)
    if len(wanted) < len(entries):
        sys.exit(BAD_ANSWER)


def _line(entry: Entry, as_json: bool) -> str:
    if as_json:
        return json.dumps({"name": entry.name, **entry.words, "target": {"kind": "celery", "config": entry.config}})
    when = " ".join(str(word) for word in entry.words.values())
    queue = f"\tqueue {entry.config['queue']}" if "queue" in entry.config else ""
    return f"{entry.name}\t{when}\t{entry.task}{queue}"


def _explain(entries: list[Entry]) -> None:
    for entry in entries:
        if entry.refused:
            click.echo(f"ksana: {entry.name} is not taken over: {entry.refused}", err=True)
        for note in entry.notes:
            click.echo(f"ksana: {entry.name}: {note}", err=True)


def _made_on_server(entries: list[Entry], url: str) -> int:
    from ksana.client import Client, Unreachable

    try:
        with Client(url, retries=2) as client:
            taken = {job.name for job in client.jobs.list(kind="celery")}
            new = [entry for entry in entries if entry.name not in taken]
            for entry in new:
                client.jobs.create(entry.name, target={"kind": "celery", "config": entry.config}, **entry.words)
    except Unreachable as error:
        raise StoreUnavailable(error.message) from error
    return len(new)


def _made_in_store(entries: list[Entry], settings: Settings) -> int:
    import asyncio

    import msgspec

    from ksana.api.v2.job_reading import read_new_job
    from ksana.api.v2.job_shapes import JobInput
    from ksana.app import Program, job_defaults
    from ksana.client.jobs import create
    from ksana.domain.queries import JobQuery

    start_logging(settings)

    async def go() -> int:
        program = Program(settings)
        await program.store.open()
        try:
            verbs = program.engine(settings.server.port).jobs
            page = await program.store.find_jobs(JobQuery(kind="celery", limit=_PAGE))
            taken = {job.name for job in page.items}
            specs = []
            for entry in entries:
                if entry.name not in taken:
                    call = create(entry.name, target={"kind": "celery", "config": entry.config}, **entry.words)
                    body = msgspec.json.decode(call.body or b"", type=JobInput)
                    now = program.clock.now()
                    specs.append(read_new_job(body, job_defaults(settings), now, verbs.checked))
            if specs:
                await verbs.create_many(_SURFACE, specs)
            return len(specs)
        finally:
            await program.store.close()

    return asyncio.run(go())
