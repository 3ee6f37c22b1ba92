"""A SQLite store as one file and back: `ksana db backup` and `restore`. Other stores have tools of their own."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ksana.domain.errors import AlreadyExists, InvalidArgument, InvalidState, NotFound, StoreUnavailable
from ksana.stores.schema_checks import schema_in

if TYPE_CHECKING:
    from datetime import datetime

_BUSY: Final = 10.0
_TOOLS: Final = {
    "postgresql": ("pg_dump --format=custom", "pg_restore --clean"),
    "mysql": ("mysqldump --single-transaction", "mysql"),
    "redis": ("redis-cli --rdb FILE", "a start of Redis with that file as its dump.rdb"),
    "rediss": ("redis-cli --rdb FILE", "a start of Redis with that file as its dump.rdb"),
    "unix": ("redis-cli --rdb FILE", "a start of Redis with that file as its dump.rdb"),
    "json": ("cp -a of its directory while no node runs", "cp -a back"),
}


def file_of(url: str) -> Path:
    """The file of a SQLite store; InvalidArgument that names the right tool for any other."""
    scheme, _, rest = url.partition(":")
    if scheme == "sqlite":
        return Path("/" + rest.lstrip("/"))
    saves, restores = _TOOLS[scheme]
    raise InvalidArgument.of(
        "store",
        f"this is for SQLite; a store at {scheme}: is saved by {saves} and restored by {restores}, and "
        "`ksana store copy` copies any store to any other",
    )


def back_up(source: Path, goal: Path) -> int:
    """Copy the store as it is at one instant, whatever nodes do meanwhile, and say how many bytes that were."""
    if not source.exists():
        raise NotFound(f"there is no store at {source}")
    if goal.exists():
        raise AlreadyExists(f"{goal} is there already; name another file, or move it away")
    with _copied(source, goal) as copy:
        copy.replace(goal)
    return goal.stat().st_size


def check_backup(source: Path) -> None:
    """NotFound or InvalidArgument unless this is a store that this program can go on with."""
    if not source.is_file():
        raise NotFound(f"there is no file {source}")
    _refuse_damaged(source)
    try:
        with _opened(source, "ro") as backup:
            schema = schema_in(backup)
    except sqlite3.Error:
        raise InvalidArgument.of("FILE", f"{source} is a database, but no store of Ksana") from None
    if schema.trouble:
        raise InvalidArgument.of("FILE", f"{source} is from another version of Ksana; install that one, or a newer one")


def refuse_nodes(store: Path, now: datetime) -> None:
    """InvalidState if nodes are at work on the store: they would go on with what they remember of it."""
    if not store.exists():
        return
    from ksana.domain.times import to_micros

    found = "SELECT name FROM ksana_nodes WHERE lease_until > ?"
    try:
        with _opened(store, "ro") as there:
            live = [name for (name,) in there.execute(found, [to_micros(now)])]
    except sqlite3.Error:
        # What cannot be read is what a backup is for.
        return
    if live:
        raise InvalidState(f"nodes are at work on {store} ({', '.join(live)}); stop them first")


def restore(source: Path, store: Path) -> None:
    """Make the store what the backup was."""
    if store.exists() and source.samefile(store):
        raise InvalidArgument.of("FILE", f"{source} is the store itself")
    with _copied(source, store) as copy:
        # The log of the old file would be taken for that of the new one.
        for suffix in ("-wal", "-shm"):
            store.with_name(store.name + suffix).unlink(missing_ok=True)
        copy.replace(store)


@contextmanager
def _copied(source: Path, goal: Path) -> Iterator[Path]:
    """A whole copy beside the place where it is to go; it is gone afterwards unless it went there."""
    part = goal.with_name(f"{goal.name}.part")
    try:
        goal.parent.mkdir(parents=True, exist_ok=True)
        # What is kept of requests may hold secrets: nobody else gets to read it, not even while it is written.
        os.close(os.open(part, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600))
        try:
            with _opened(source, "ro") as origin, _opened(part, "rw") as copy:
                # In one step: between two, a busy node would write, and SQLite would begin again each time.
                origin.backup(copy)
                # One file: without this, whoever opened it would leave a log beside it.
                copy.execute("PRAGMA journal_mode=DELETE")
            _refuse_damaged(part)
            yield part
        finally:
            part.unlink(missing_ok=True)
    except (OSError, sqlite3.Error) as error:
        raise StoreUnavailable(f"{goal} cannot be written: {error}") from error


@contextmanager
def _opened(path: Path, mode: str) -> Iterator[sqlite3.Connection]:
    address = f"{path.absolute().as_uri()}?mode={mode}"
    with closing(sqlite3.connect(address, uri=True, timeout=_BUSY, isolation_level=None)) as connection:
        yield connection


def _refuse_damaged(path: Path) -> None:
    try:
        with _opened(path, "ro") as connection:
            [(health,)] = connection.execute("PRAGMA quick_check(1)").fetchall()
    except sqlite3.DatabaseError as error:
        health = str(error)
    if health != "ok":
        raise InvalidArgument.of("FILE", f"{path} is damaged, or no database ({health})")
