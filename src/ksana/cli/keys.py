"""`ksana key`: API keys of the store."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ksana.cli.options import settings_from, start_logging, store_options
from ksana.domain.errors import NotFound

if TYPE_CHECKING:
    from ksana.domain.ports import Store

T = TypeVar("T")

_SCOPES = (
    *("admin", "job:read", "job:write", "run:read", "run:write", "run:control", "chain:read", "chain:write"),
    *("queue:read", "queue:write", "queue:work"),
)


@click.group()
def key() -> None:
    """Make, list and revoke API keys."""


@key.command()
@click.option("--name", default="key", show_default=True, help="What the key is for.")
@click.option(
    "--scope", "scopes", multiple=True, type=click.Choice(_SCOPES), default=("admin",), help="May be repeated."
)
@click.option("--offline", is_flag=True, help="Only print a key, for KSANA_API_KEYS; store nothing.")
@store_options
def create(name: str, scopes: tuple[str, ...], offline: bool, config_path: Path | None, **flags: Any) -> None:
    """Make an API key. It is shown once: only a digest is stored."""
    import secrets
    from datetime import UTC, datetime

    from ksana.domain.keys import KEY_RANDOM_BYTES, Scope, new_key

    made = new_key(
        secrets.token_bytes(KEY_RANDOM_BYTES),
        name=name,
        scopes=[Scope(scope) for scope in scopes],
        created_at=datetime.now(UTC),
    )
    if not offline:
        _with_store(config_path, flags, lambda store: store.add_key(made.stored))
    click.echo(made.text)
    click.echo("keep it now, it is not shown again; send it as  Authorization: Bearer …", err=True)


@key.command("list")
@store_options
def list_keys(config_path: Path | None, **flags: Any) -> None:
    """List the keys of the store."""
    from ksana.domain.times import format_instant

    for stored in _with_store(config_path, flags, lambda store: store.keys()):
        state = "active" if stored.revoked_at is None else f"revoked {format_instant(stored.revoked_at)}"
        scopes = ",".join(sorted(stored.scopes))
        click.echo(f"{stored.id}\t{stored.name}\t{scopes}\t{format_instant(stored.created_at)}\t{state}")


@key.command()
@click.argument("key_id")
@store_options
def revoke(key_id: str, config_path: Path | None, **flags: Any) -> None:
    """Revoke the key with KEY_ID (the part between the underscores, or as `list` shows it)."""
    from datetime import UTC, datetime

    if not _with_store(config_path, flags, lambda store: store.revoke_key(key_id, datetime.now(UTC))):
        raise NotFound(f"there is no active key {key_id}")
    click.echo(f"{key_id} is revoked; servers notice within seconds", err=True)


def _with_store(config_path: Path | None, flags: dict[str, Any], use: Callable[[Store], Awaitable[T]]) -> T:
    import asyncio

    settings = settings_from(config_path, **flags)
    start_logging(settings)
    from ksana.app import store_of

    async def go() -> T:
        store = store_of(settings)
        await store.open()
        try:
            return await use(store)
        finally:
            await store.close()

    return asyncio.run(go())
