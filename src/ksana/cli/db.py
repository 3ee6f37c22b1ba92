"""`ksana db`: the schema of the store, and its backup."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ksana.cli.asking import confirmed, shown
from ksana.cli.groups import Nouns
from ksana.cli.options import settings_from, start_logging, store_options
from ksana.cli.output import Out

if TYPE_CHECKING:
    from ksana.config import Settings


@click.group(cls=Nouns)
def db() -> None:
    """Look after the store."""


@db.command()
@store_options
@shown
def migrate(config_path: Path | None, out: Out, **flags: Any) -> None:
    """Bring the store's schema up to date. Safe to run on any number of nodes at once; `serve` does it too."""
    settings = settings_from(config_path, **flags)
    start_logging(settings)
    from ksana.config import mask_url

    migrate_store(settings)
    where = mask_url(settings.storage.url)
    if out.as_json:
        out.json({"store": where, "is_up_to_date": True})
    else:
        click.echo(f"{where} is up to date")


@db.command()
@click.argument("file", type=click.Path(path_type=Path))
@store_options
@shown
def backup(file: Path, config_path: Path | None, out: Out, **flags: Any) -> None:
    """Copy a SQLite store into FILE, as it is now; nodes may be at work meanwhile."""
    from ksana.stores.sqlite_backup import back_up, file_of

    store = file_of(settings_from(config_path, **flags).storage.url)
    size = back_up(store, file)
    if out.as_json:
        out.json({"store": str(store), "file": str(file), "bytes": size})
    else:
        click.echo(f"{file} has {size} bytes of {store}")


@db.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("-y", "--yes", "is_yes", is_flag=True, help="Do not ask.")
@store_options
@shown
def restore(file: Path, is_yes: bool, config_path: Path | None, out: Out, **flags: Any) -> None:
    """Make a SQLite store what it was when FILE was made; all nodes must be stopped.

    What has happened since is forgotten, and what has come due since is made up for as each job says.
    """
    from datetime import UTC, datetime

    from ksana.stores.sqlite_backup import check_backup, file_of, refuse_nodes
    from ksana.stores.sqlite_backup import restore as put_back

    settings = settings_from(config_path, **flags)
    store = file_of(settings.storage.url)
    check_backup(file)
    refuse_nodes(store, datetime.now(UTC))
    if store.exists():
        confirmed(out, is_yes, f"Replace all that is in {store} by {file}?")
    put_back(file, store)

    # A backup may be older than this program.
    migrate_store(settings)
    if out.as_json:
        out.json({"store": str(store), "file": str(file)})
    else:
        click.echo(f"{store} is what {file} has")


def migrate_store(settings: Settings) -> None:
    """Bring the schema of the store of these settings up to date."""
    import asyncio

    from ksana.app import store_of

    async def go() -> None:
        store = store_of(settings)
        await store.open()
        await store.close()

    asyncio.run(go())
