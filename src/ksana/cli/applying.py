"""`ksana jobs apply` and `diff`: make the server's jobs what files say, and see first what that would change."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ksana.cli.asking import asked, confirmed
from ksana.cli.output import Cell, Column, Out
from ksana.cli.problems import BAD_ANSWER

if TYPE_CHECKING:
    from ksana.cli.definitions import Definition
    from ksana.cli.planning import Step
    from ksana.client import Client

_FILES = click.option(
    "-f", "--file", "paths", multiple=True, required=True, help="YAML or JSON file, directory, or - for stdin."
)
_SET = click.option(
    "--set", "set_name", default="default", show_default=True, help="Name of this set of files; prune stays within it."
)
_PRUNE = click.option(
    "--prune", "is_pruning", is_flag=True, help="Delete jobs of this set that the files no longer have."
)
_STYLES = {"create": "green", "update": "yellow", "delete": "red", "unchanged": "bright_black"}


@click.command()
@_FILES
@_SET
@_PRUNE
@click.option("-y", "--yes", "is_yes", is_flag=True, help="Do not ask before jobs are deleted.")
@click.option("--dry-run", "is_dry", is_flag=True, help="Only print what would be done.")
@asked
def apply(
    paths: tuple[str, ...],
    set_name: str,
    is_pruning: bool,
    is_yes: bool,
    is_dry: bool,
    server: Client,
    out: Out,
) -> None:
    """Make the jobs of the server what files say.

    A file has jobs in the shape of POST /api/v2/jobs, told apart by their names; it may also be a jobs.json, a CronJob
    task or a chain's DAG. What is paused stays paused, and what somebody changed on the server since the last apply
    stays as they changed it.
    """
    from ksana.cli.bulk import done_to

    steps = _planned(server, paths, set_name, is_pruning)
    _show(out, steps)
    todo = [step for step in steps if step.action != "unchanged" or step.needs_mark]
    if is_dry:
        out.say(f"{_counted(steps)}; nothing was done")
        return
    gone = [step.name for step in todo if step.action == "delete"]
    if gone:
        confirmed(out, is_yes, f"Delete {', '.join(gone)}?")
    if todo:
        done_to(out, todo, lambda step: _carry_out(server, step, set_name), lambda step: step.name)
    out.say(_counted(steps))


@click.command()
@_FILES
@_SET
@_PRUNE
@asked
def diff(paths: tuple[str, ...], set_name: str, is_pruning: bool, server: Client, out: Out) -> None:
    """Show what an apply would change. Exits with 1 if it would change anything."""
    steps = _planned(server, paths, set_name, is_pruning)
    _show(out, steps)
    out.say(_counted(steps))
    if any(step.action != "unchanged" for step in steps):
        raise SystemExit(BAD_ANSWER)


def _planned(server: Client, paths: tuple[str, ...], set_name: str, is_pruning: bool) -> list[Step]:
    from ksana.cli.definitions import read_definitions
    from ksana.cli.planning import plan

    definitions = read_definitions(paths)
    return plan(definitions, _stored(server, definitions, set_name, is_pruning), set_name, is_pruning=is_pruning)


def _stored(server: Client, definitions: list[Definition], set_name: str, is_pruning: bool) -> list[dict[str, Any]]:
    """The jobs that matter: those of the set, and those with the names of the files."""
    import msgspec

    from ksana.cli.planning import set_tag

    found = {job.name: job for job in server.jobs.list(surface="v2", tag=set_tag(set_name), page_size=200)}
    for one in definitions:
        if one.name not in found:
            same = [job for job in server.jobs.list(surface="v2", name=one.name) if job.name == one.name]
            found |= {job.name: job for job in same}
    return [msgspec.to_builtins(job) for job in found.values()]


def _carry_out(server: Client, step: Step, set_name: str) -> None:
    from ksana.cli.planning import marked_tags, shown_tags
    from ksana.client.asking import key_header

    if step.action == "delete":
        server.ask("DELETE", f"/api/v2/jobs/{step.id}", headers={"If-Match": f'"{step.version}"'})
        return
    if step.action == "create":
        job = server.ask("POST", "/api/v2/jobs", step.body, headers=key_header(None))
    elif step.action == "unchanged":
        job = server.ask("GET", f"/api/v2/jobs/{step.id}")
    else:
        job = server.ask("PATCH", f"/api/v2/jobs/{step.id}", {**step.body, "version": step.version})
    tags = marked_tags(shown_tags(job["tags"]), job, step, set_name)
    server.ask("PATCH", f"/api/v2/jobs/{job['id']}", {"tags": tags, "version": job["version"]})


def _show(out: Out, steps: list[Step]) -> None:
    from ksana.cli.looks import json_text

    def changed(step: Step) -> str:
        if step.action == "create":
            return ""
        parts = [f"{one.path}: {json_text(one.before)} → {json_text(one.after)}" for one in step.changes]
        return "; ".join([*parts, *(f"{field}: overridden, stays" for field in step.overridden)])

    columns: list[Column[Step]] = [
        Column("action", lambda step: Cell(step.action, _STYLES[step.action])),
        Column("name", lambda step: step.name),
        Column("changes", changed, is_text=True),
    ]

    def data(step: Step) -> Any:
        return {
            "action": step.action,
            "name": step.name,
            "id": step.id,
            "changes": [change._asdict() for change in step.changes],
            "overridden": step.overridden,
        }

    out.table(columns, steps, lambda step: step.name, data)


def _counted(steps: list[Step]) -> str:
    counts = {action: sum(step.action == action for step in steps) for action in _STYLES}
    return ", ".join(f"{count} {action}" for action, count in counts.items() if count) or "no jobs"
