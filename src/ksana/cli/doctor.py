"""`ksana doctor`: what is not as it should be, and how to mend it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

import ksana
from ksana.cli.asking import connected, shown
from ksana.cli.options import settings_from, store_options
from ksana.cli.output import Cell, Column, Out
from ksana.cli.problems import BAD_ANSWER

_MARKS = {"ok": ("✓", "green"), "warn": ("!", "yellow"), "bad": ("✕", "red")}


@click.command()
@click.option("--url", help="The server (KSANA_URL, else that of the settings).")
@click.option("--key", "--token", "key", help="The API key (KSANA_KEY).")
@click.option("--no-server", "is_alone", is_flag=True, help="Look at this machine only.")
@store_options
@shown
def doctor(url: str | None, key: str | None, is_alone: bool, config_path: Path | None, out: Out, **flags: Any) -> None:
    """Look at settings, store, clock, port and server. Exits with 1 if something is wrong; nothing is changed."""
    import os
    from datetime import UTC, datetime

    from ksana.cli.checks import Check, local_checks, port_check, server_checks

    settings = settings_from(config_path, **flags)
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
