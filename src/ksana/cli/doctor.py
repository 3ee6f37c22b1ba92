"""`ksana doctor`: what is not as it should be, and how to mend it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import ksana
from ksana.cli.asking import agreed, connected, shown
from ksana.cli.options import settings_from, store_options
from ksana.cli.output import Cell, Column, Out
from ksana.cli.problems import BAD_ANSWER

if TYPE_CHECKING:
    from ksana.config import Settings

_MARKS = {"ok": ("✓", "green"), "warn": ("!", "yellow"), "bad": ("✕", "red")}


@click.command()
@click.option("--url", help="The server (KSANA_URL, else that of the settings).")
@click.option("--key", "--token", "key", help="The API key (KSANA_KEY).")
@click.option("--no-server", "is_alone", is_flag=True, help="Look at this machine only.")
@click.option("--fix", "is_fixing", is_flag=True, help="Mend what can be mended safely; asks before each.")
@click.option("-y", "--yes", "is_yes", is_flag=True, help="Do not ask.")
@store_options
@shown
def doctor(
    url: str | None,
    key: str | None,
    is_alone: bool,
    is_fixing: bool,
    is_yes: bool,
    config_path: Path | None,
    out: Out,
    **flags: Any,
) -> None:
    """Look at settings, store, clock, port and server. Exits with 1 if something is wrong. Nothing is changed, unless
    --fix is to make the data directory, bring the schema up to date or keep the files of the store from others."""
    import os
    from datetime import UTC, datetime

    from ksana.cli.checks import Check, local_checks, port_check, server_checks

    settings = settings_from(config_path, **flags)
    if is_fixing:
        _mend(settings, is_yes, out)
    checks = list(local_checks(settings))
    is_ours = False
    if not is_alone:
        host = settings.server.host
        own = f"http://{f'[{host}]' if ':' in host else host}:{settings.server.port}"
        where = url or os.environ.get("KSANA_URL") or own
        with connected(where, key, retries=0) as server:
            found = list(server_checks(server, ksana.__version__, datetime.now(UTC)))
        is_ours = where == own and found[0].level == "ok"
        checks += found
    checks.append(port_check(settings, is_ours))
    columns: list[Column[Check]] = [
        Column("", lambda check: Cell(*_MARKS[check.level])),
        Column("what", lambda check: check.name),
        Column("state", lambda check: check.text, is_text=True),
        Column("fix", lambda check: check.fix, is_text=True),
    ]
    out.table(columns, checks, lambda check: check.name)
    if any(check.level == "bad" for check in checks):
        raise SystemExit(BAD_ANSWER)


def _mend(settings: Settings, is_yes: bool, out: Out) -> None:
    from ksana.cli.checks import local_checks
    from ksana.cli.mending import mends

    found = list(mends(settings, local_checks(settings)))
    for mend in found:
        if agreed(is_yes, mend.question):
            mend.act()
            out.say(mend.done)
    if not found:
        out.say("there is nothing to mend from here")
