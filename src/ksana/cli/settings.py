"""`ksana config`: what the settings are and where each came from."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from ksana.cli.groups import Nouns
from ksana.cli.options import settings_from, store_options


@click.group(cls=Nouns)
def config() -> None:
    """Look at the settings."""


@config.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@store_options
def show(as_json: bool, config_path: Path | None, **flags: Any) -> None:
    """Print every setting with its value and its source; secrets are hidden."""
    from ksana.config import settings_report

    settings = settings_from(config_path, **flags)
    rows = settings_report(settings)
    if as_json:
        click.echo(json.dumps({row.key: {"value": row.value, "source": row.source} for row in rows}))
    else:
        for row in rows:
            click.echo(f"{row.key}\t{row.value}\t{row.source}")
    for warning in settings.warnings:
        click.echo(f"ksana: {warning}", err=True)
