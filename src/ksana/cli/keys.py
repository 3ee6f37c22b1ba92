"""`ksana key`: API keys of the store."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ksana.cli.asking import shown
from ksana.cli.groups import Nouns
from ksana.cli.options import settings_from, start_logging, store_options
from ksana.cli.output import Column, Out
from ksana.domain.errors import NotFound

if TYPE_CHECKING:
    from ksana.domain.keys import StoredKey
    from ksana.domain.ports import Store

T = TypeVar("T")

# Who makes keys by hand, as the audit names them.
_ACTOR = "command line"

_SCOPES = (
    *("admin", "job:read", "job:write", "run:read", "run:write", "run:control", "chain:read", "chain:write"),
    *("queue:read", "queue:write", "queue:work"),
)


@click.group(cls=Nouns)
def key() -> None:
    """Make, list and revoke API keys."""


@key.command()
@click.option("--name", default="key", show_default=True, help="What the key is for.")
@click.option(
    "--scope", "scopes", multiple=True, type=click.Choice(_SCOPES), default=("admin",), help="May be repeated."
)
@click.option("--offline", is_flag=True, help="Only print a key, for KSANA_API_KEYS; store nothing.")
@store_options
@shown
def create(name: str, scopes: tuple[str, ...], offline: bool, config_path: Path | None, out: Out, **flags: Any) -> None:
    """Make an API key. It is shown once: only a digest is stored."""
    import secrets
    from datetime import UTC, datetime

    from ksana.domain.keys import KEY_RANDOM_BYTES, Scope, new_key
    from ksana.engine.auditing import Actor
    from ksana.engine.key_verbs import add_key

    made = new_key(
        secrets.token_bytes(KEY_RANDOM_BYTES),
        name=name,
        scopes=[Scope(scope) for scope in scopes],
        created_at=datetime.now(UTC),
    )
    if not offline:
        _with_store(config_path, flags, lambda store: add_key(store, made.stored, Actor(_ACTOR)))
    if out.as_json:
        out.json({"id": made.stored.id, "name": name, "scopes": sorted(scopes), "key": made.text})
    else:
        click.echo(made.text)
    out.say("keep it now, it is not shown again; send it as  Authorization: Bearer …")


@key.command("list")
@store_options
@shown
def list_keys(config_path: Path | None, out: Out, **flags: Any) -> None:
    """List the keys of the store."""
    from ksana.domain.times import format_instant

    def state(stored: StoredKey) -> str:
        return "active" if stored.revoked_at is None else f"revoked {format_instant(stored.revoked_at)}"

    columns: list[Column[StoredKey]] = [
        Column("id", lambda stored: stored.id),
        Column("name", lambda stored: stored.name),
        Column("scopes", lambda stored: ",".join(sorted(stored.scopes))),
        Column("created", lambda stored: format_instant(stored.created_at)),
        Column("state", state),
    ]

    def data(stored: StoredKey) -> dict[str, Any]:
        # Not even the digest: it is of no use to anybody but a thief.
        names = ("id", "name", "created_at", "revoked_at")
        return {name: getattr(stored, name) for name in names} | {"scopes": sorted(stored.scopes)}

    out.table(columns, _with_store(config_path, flags, lambda store: store.keys()), lambda stored: stored.id, data)


@key.command()
@click.argument("key_id")
@store_options
@shown
def revoke(key_id: str, config_path: Path | None, out: Out, **flags: Any) -> None:
    """Revoke the key with KEY_ID (the part between the underscores, or as `list` shows it)."""
    from datetime import UTC, datetime

    from ksana.engine.auditing import Actor
    from ksana.engine.key_verbs import revoke_key

    now = datetime.now(UTC)
    if not _with_store(config_path, flags, lambda store: revoke_key(store, key_id, now, Actor(_ACTOR))):
        raise NotFound(f"there is no active key {key_id}")
    if out.as_json:
        out.json({"id": key_id, "revoked_at": now})
    out.say(f"{key_id} is revoked; servers notice within seconds")


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
