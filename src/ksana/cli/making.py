"""`ksana jobs create`, `edit`, `duplicate` and `export`: jobs from options, from an editor, from each other."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from ksana.cli.asking import asked
from ksana.cli.finding import find_job, job_names
from ksana.cli.looks import job_columns
from ksana.cli.output import Out
from ksana.cli.values import file_text, json_of, pairs_of, text_of
from ksana.domain.errors import InvalidArgument

if TYPE_CHECKING:
    from ksana.client import Client, Job

_WORDS = (
    click.option("--http", help='What to call: "POST https://…".'),
    click.option("--header", "headers", multiple=True, help='"Name: value", sent with --http; may be repeated.'),
    click.option("--body", help="JSON sent with --http; @FILE reads a file, - stdin."),
    click.option("--target", "kind", help="Another kind of target than http."),
    click.option("--config", "config_text", help="JSON: what the target is told; @FILE reads a file."),
    click.option("--every", help="Run so often: 30s, 5m, 1h30m."),
    click.option("--cron", help="Run by a cron expression."),
    click.option("--at", help="Run once, at an RFC 3339 instant."),
    click.option("--timezone", help="Zone the cron expression is read in."),
    click.option("--jitter", help="Delay each fire by up to so long."),
    click.option("--description", help="What it is for."),
    click.option("--tag", "tags", multiple=True, help="May be repeated."),
    click.option("--queue", help="Which workers take it."),
    click.option("--priority", type=click.Choice(["low", "normal", "high"])),
    click.option("--retries", type=click.IntRange(0, 999), help="Tries after the first."),
    click.option("--backoff", help="Pause before a retry: 5s, or 5s..1m to double it up to there."),
    click.option("--timeout", help="How long an attempt may take."),
    click.option("--overlap", type=click.Choice(["queue", "skip", "parallel"]), help="If a run is still under way."),
    click.option("--misfire", type=click.Choice(["skip", "fire_once", "catch_up"]), help="If nobody was there."),
)


def words(function: Callable[..., Any]) -> Callable[..., Any]:
    """The options that say what a job does and when."""
    for option in reversed(_WORDS):
        function = option(function)
    return function


@click.command()
@click.argument("name")
@words
@click.option("--paused", "is_paused", is_flag=True, help="Make it, but plan nothing yet.")
@click.option("--dry-run", "is_dry", is_flag=True, help="Only print the definition.")
@asked
def create(name: str, is_paused: bool, is_dry: bool, server: Client, out: Out, **said: Any) -> None:
    """Make a job: `ksana jobs create ping --http "GET https://example.com" --every 5m`."""
    body = {"name": name, **_body(said)}
    if is_paused:
        body["enabled"] = False
    if "target" not in body:
        raise InvalidArgument.of("--http", 'say what it calls: --http "GET https://…", or --target KIND')
    if is_dry:
        out.json(body)
        return
    made = server.ask("POST", "/api/v2/jobs", body, headers=_once())
    _show(out, server.jobs.get(made["id"]))


@click.command()
@click.argument("job", shell_complete=job_names)
@click.option("--rename", "new_name", help="Another name.")
@words
@click.option("--unschedule", "is_unscheduled", is_flag=True, help="Take the schedule away.")
@click.option("-f", "--file", "path", help="YAML or JSON with what is to change; - reads stdin.")
@asked
def edit(
    job: str,
    new_name: str | None,
    is_unscheduled: bool,
    path: str | None,
    server: Client,
    out: Out,
    **said: Any,
) -> None:
    """Change a job: by options, from a file, or without any in your editor."""
    found = find_job(server, job)
    patch = _body(said)
    if path is not None:
        patch |= _mapping(file_text(path, "-f"))
    if new_name is not None:
        patch["name"] = new_name
    if is_unscheduled:
        patch["schedule"] = None
    if not patch:
        patch = _edited(found)
    if not patch:
        out.say("nothing was changed")
        return
    server.ask("PATCH", f"/api/v2/jobs/{found.id}", {**patch, "version": found.version})
    _show(out, server.jobs.get(found.id))


@click.command()
@click.argument("job", shell_complete=job_names)
@click.argument("name", required=False)
@click.option("--paused", "is_paused", is_flag=True, help="Make the copy, but plan nothing yet.")
@asked
def duplicate(job: str, name: str | None, is_paused: bool, server: Client, out: Out) -> None:
    """Copy a job under another NAME (default: its name and "copy"). The copy is enabled unless told otherwise."""
    found = find_job(server, job)
    body = _definition(found) | {"name": name or f"{found.name} copy", "enabled": not is_paused}
    made = server.ask("POST", "/api/v2/jobs", body, headers=_once())
    _show(out, server.jobs.get(made["id"]))


@click.command()
@click.argument("names", metavar="[JOB]...", nargs=-1, shell_complete=job_names)
@click.option("--tag", help="Jobs with this tag.")
@asked
def export(names: tuple[str, ...], tag: str | None, server: Client, out: Out) -> None:
    """Print jobs as `apply` takes them: YAML documents, or with --json one JSON document a line."""
    found = [find_job(server, name) for name in names] if names else server.jobs.list(tag=tag)
    import yaml

    for job in found:
        if out.is_quiet:
            click.echo(str(job.id))
        elif out.as_json:
            out.json(_definition(job))
        else:
            text = yaml.safe_dump(_definition(job), sort_keys=False, allow_unicode=True)
            click.echo(f"---\n{text}", nl=False)


def _definition(job: Job) -> dict[str, Any]:
    import msgspec

    from ksana.cli.definitions import definition_of
    from ksana.cli.planning import shown_tags

    body = definition_of(msgspec.to_builtins(job))
    tags = shown_tags(body.pop("tags", []))
    return body | ({"tags": tags} if tags else {})


def _edited(job: Job) -> dict[str, Any]:
    """What somebody changed of a job in their editor."""
    import yaml

    before = _definition(job)
    # Whether it is paused has verbs of its own.
    before.pop("enabled", None)
    text = click.edit(yaml.safe_dump(before, sort_keys=False, allow_unicode=True), extension=".yaml")
    if text is None:
        return {}
    after = _mapping(text)
    gone = {"schedule": None} if "schedule" in before and "schedule" not in after else {}
    return {name: value for name, value in after.items() if before.get(name) != value} | gone


def _mapping(text: str) -> dict[str, Any]:
    from ksana.cli.definitions import trees_of

    found = trees_of(text)
    if len(found) != 1 or not isinstance(found[0], dict):
        raise InvalidArgument.of("", "write one mapping of fields, such as retry: {max_attempts: 3}")
    return found[0]


def _body(said: dict[str, Any]) -> dict[str, Any]:
    """Options as the fields of a request; what was not said is absent."""
    from ksana.client.asking import schedule_of

    times = {"every": said["every"], "cron": said["cron"], "at": said["at"], "tz": said["timezone"]}
    fields = {
        "target": _target(said),
        "schedule": schedule_of({**times, "jitter": said["jitter"]}),
        "description": said["description"],
        "tags": list(said["tags"]) or None,
        "queue": said["queue"],
        "priority": said["priority"],
        "retry": _retry(said["retries"], said["backoff"]) or None,
        "timeouts": {"total": said["timeout"]} if said["timeout"] else None,
        "overlap": {"rule": said["overlap"]} if said["overlap"] else None,
        "misfire": {"rule": said["misfire"]} if said["misfire"] else None,
    }
    return {name: value for name, value in fields.items() if value is not None}


def _target(said: dict[str, Any]) -> dict[str, Any] | None:
    from ksana.client.asking import target_of

    if said["kind"] is not None:
        if said["http"] is not None:
            raise InvalidArgument.of("--target", "say either --target or --http")
        return {"kind": said["kind"], "config": json_of(said["config_text"], "--config") or {}}
    if said["config_text"] is not None:
        raise InvalidArgument.of("--config", "goes with --target")
    body = said["body"]
    headers = pairs_of(said["headers"], "--header", ":") or None
    target = target_of(None, said["http"], None, headers)
    if target is not None and body is not None:
        target["config"] |= _payload(text_of(body, "--body"))
    elif body is not None:
        raise InvalidArgument.of("--body", "goes with --http")
    return target


def _payload(text: str) -> dict[str, Any]:
    """JSON as JSON, so that it is sent with its type; anything else as it stands."""
    import json

    try:
        return {"json": json.loads(text)}
    except ValueError:
        return {"body": text}


def _retry(retries: int | None, backoff: str | None) -> dict[str, Any]:
    found: dict[str, Any] = {} if retries is None else {"max_attempts": 1 + retries}
    if backoff is not None:
        first, dots, last = backoff.partition("..")
        found["initial_delay"] = first
        if dots:
            found |= {"strategy": "exponential", "max_delay": last}
    return found


def _once() -> dict[str, str]:
    from ksana.client.asking import key_header

    return key_header(None)


def _show(out: Out, job: Job) -> None:
    out.row(job_columns(out), job, lambda one: one.id)
