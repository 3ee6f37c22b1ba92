"""`ksana db`: the schema of the store."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ksana.cli.options import settings_from, start_logging, store_options


@click.group()
def db() -> None:
    """Look after the store."""


@db.command()
@store_options
def migrate(config_path: Path | None, **flags: Any) -> None:
    """Bring the store's schema up to date. Safe to run on any number of nodes at once; `serve` does it too."""
    import asyncio

    settings = settings_from(config_path, **flags)
    start_logging(settings)
    from ksana.app import store_of
    from ksana.config import mask_url

    async def go() -> None:
        store = store_of(settings)
        await store.open()
        await store.close()

    asyncio.run(go())
    click.echo(f"{mask_url(settings.storage.url)} is up to date")
