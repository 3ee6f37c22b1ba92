"""The page about the command, made from the commands themselves, so that the two cannot disagree."""

from __future__ import annotations

from collections.abc import Iterator

import click

from ksana.cli import command
from ksana.cli.problems import (
    BAD_ANSWER,
    BUG,
    CONFLICT,
    INTERRUPTED,
    NOT_ALLOWED,
    NOT_FOUND,
    PARTLY_FAILED,
    STILL_RUNNING,
    UNREACHABLE,
    USAGE,
)

_CODES = {
    0: "done",
    BAD_ANSWER: "done, but the answer is bad: a run that failed, a diff, a fault the doctor found, what never fires",
    USAGE: "the command is wrong; the message names the option or field",
    NOT_FOUND: "there is no such job, run, item or file",
    CONFLICT: "somebody was quicker, or the state does not allow it",
    UNREACHABLE: "the server or the store does not answer",
    NOT_ALLOWED: "the key is missing, unknown, or may not do this",
    STILL_RUNNING: "`--wait` was over before the run was",
    PARTLY_FAILED: "of many some could not be done",
    BUG: "a bug; please report it",
    INTERRUPTED: "Ctrl-C",
}
_SHARED = ("as_json", "is_quiet", "language", "zone_name", "url", "key")
_INTRO = """\
# The command

<!-- Made by ksana.cli.reference from the commands; a test compares them. -->

`ksana` is nouns and verbs. On a terminal it answers with tables in colour (`NO_COLOR` is heeded), in a pipe with
tab-separated lines. Data goes to stdout and everything else to stderr. Ids and names are never cut short.

| option of nearly every command | |
|---|---|
| `--json` | one JSON document a line; an error is printed on stdout too, as the API would write it |
| `-q`, `--quiet` | ids only |
| `--lang en`, `--lang zh` | the language, else that of the locale |
| `--tz ZONE` | the zone that instants are shown in, with their offset; else that of this machine |
| `--url URL` | the server to ask, else that of `KSANA_URL`, else `http://127.0.0.1:7100` |
| `--key KEY`, `--token KEY` | the API key, else that of `KSANA_KEY` |

These need no server: `explain`, `import crontab --dry-run`, `chains validate`, `chains draw FILE`, `doctor`, `init`,
`completion`, `config`, `store`, `db` and `key`.

A job is named by its id or its name. What deletes or stops asks first, unless told `--yes`; `--dry-run` prints the
plan. `--wait` follows a run to its end and returns its verdict.

| exit code | |
|---|---|
"""
_APPLY = """\

## Jobs in files

`ksana jobs apply -f jobs/` makes the jobs of the server what the files say; `ksana jobs diff -f jobs/` shows first what
that would change. A file is YAML or JSON with the body of `POST /api/v2/jobs`, one or many, told apart by `name`:

```yaml
name: report
target: {kind: http, config: {method: POST, url: "https://example.com/report"}}
schedule: {kind: cron, expr: "0 9 * * 1-5", timezone: Asia/Shanghai}
retry: {max_attempts: 4}
```

It may also be a `jobs.json` of timers, a task as `POST /api/v1/tasks` takes it, or a chain's DAG, alone (then the
file's name is its name) or as `POST /api/v1/chains` takes it. They become jobs of `/api/v2`.

Files own what a job does and when. Operators own whether it is paused, and what they changed on the server since the
last apply: such a field is shown as overridden and stays, until the file says the same. `--prune` deletes jobs that the
files no longer have, and only those an apply with the same `--set` has made. What was applied carries two tags,
`applied/SET` and a sum of its fields.
"""


def render_cli_reference() -> str:
    """The page docs/cli.md."""
    codes = "".join(f"| {code} | {meaning} |\n" for code, meaning in _CODES.items())
    context = click.Context(command, info_name="ksana")
    return "".join([_INTRO, codes, _APPLY, *_sections(command, context)])


def _sections(group: click.Group, context: click.Context) -> Iterator[str]:
    for name in group.list_commands(context):
        found = group.get_command(context, name)
        assert found is not None
        inner = click.Context(found, info_name=name, parent=context)
        if isinstance(found, click.Group):
            yield f"\n## {inner.command_path}\n\n{_help(found)}"
            yield from _sections(found, inner)
        else:
            level = "##" if context.parent is None else "###"
            yield f"\n{level} {inner.command_path}\n\n{_help(found)}\n{_usage(found, inner)}{_options(found, inner)}"


def _help(found: click.Command) -> str:
    return " ".join((found.help or "").split()) + "\n"


def _usage(found: click.Command, context: click.Context) -> str:
    return f"    {context.command_path} {' '.join(found.collect_usage_pieces(context))}\n"


def _options(found: click.Command, context: click.Context) -> str:
    rows = [
        record
        for parameter in found.params
        if isinstance(parameter, click.Option)
        and parameter.name not in _SHARED
        and (record := parameter.get_help_record(context)) is not None
    ]
    if not rows:
        return ""
    cells = "".join(f"| `{_cell(names)}` | {_cell(text)} |\n" for names, text in rows)
    return f"\n| option | |\n|---|---|\n{cells}"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
