"""What `ksana doctor` looks at. Each check says what it found and, if that is not well, the command that mends it.

Nothing here writes: a doctor that migrates a store has treated more than was asked. What `--fix` does is in mending.py.
"""

from __future__ import annotations

import importlib.util
import os
import socket
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

import msgspec

from ksana.domain.errors import KsanaError

if TYPE_CHECKING:
    from ksana.client import Client
    from ksana.config import Settings
    from ksana.stores.schema_checks import Schema

Level = Literal["ok", "warn", "bad"]

DIRECTORY, MODES, JOURNAL, MIGRATIONS = "data directory", "file modes", "journal", "migrations"
_OTHERS = 0o077
_MOST_SKEW = timedelta(seconds=2)
_OVER_A_WIRE = frozenset({"nfs", "nfs4", "cifs", "smb3", "smbfs", "fuse.sshfs", "9p", "afs", "ceph"})
_PORTS = {"postgresql": 5432, "postgres": 5432, "mysql": 3306, "redis": 6379, "rediss": 6379}
_PACKAGES = {
    "postgresql": ("asyncpg", "postgres"),
    "postgres": ("asyncpg", "postgres"),
    "mysql": ("asyncmy", "mysql"),
    "redis": ("redis", "redis"),
    "rediss": ("redis", "redis"),
    "unix": ("redis", "redis"),
}


class Check(msgspec.Struct, frozen=True):
    """One thing that was looked at."""

    name: str
    level: Level
    text: str
    fix: str = ""


def local_checks(settings: Settings, mounts: Path = Path("/proc/self/mounts")) -> Iterator[Check]:
    """What can be seen from here, without a server."""
    for warning in settings.warnings:
        yield Check("settings", "warn", warning, "ksana config show")
    if not settings.warnings:
        yield Check("settings", "ok", "no variable or key clashes with another")
    yield _zones()
    yield _exposure(settings)
    scheme, _, rest = settings.storage.url.partition(":")
    if scheme in ("sqlite", "json"):
        path = Path("/" + rest.lstrip("/"))
        directory = path if scheme == "json" else path.parent
        yield _writable(directory)
        yield _on_this_machine(directory, mounts)
        yield _modes(store_files(settings))
        if scheme == "sqlite" and path.exists():
            yield from _sqlite(path)
    else:
        yield from _server_store(scheme, settings.storage.url)


def server_checks(server: Client, version: str, now: datetime) -> Iterator[Check]:
    """What the server says of itself, and how far its clock is from ours."""
    try:
        seen = server.ask("GET", "/api/v2/system")
    except KsanaError as error:
        yield Check("server", "warn", error.message, "ksana serve")
        return
    yield Check("server", "ok", f"version {seen['version']} answers")
    if seen["version"] != version:
        text = f"this command is {version}, the server {seen['version']}"
        yield Check("version", "warn", text, "install the same version on both")
    yield from _skew(seen, now)
    dead = [node["name"] for node in seen["nodes"] if not node["is_alive"]]
    if dead:
        yield Check("nodes", "warn", f"no sign of life from {', '.join(dead)}", "start them again, or let them lapse")
    for check in seen["checks"]:
        yield Check(f"server: {check['name']}", check["level"], check["text"], check.get("fix") or "")


def port_check(settings: Settings, is_ours: bool) -> Check:
    """Whether the port is free, or taken by the server that was just asked."""
    host, port = settings.server.host, settings.server.port
    if is_ours:
        return Check("port", "ok", f"the server listens on {host}:{port}")
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            return Check("port", "bad", f"{host}:{port} cannot be had: {error.strerror}", "ksana serve --port 0")
    return Check("port", "ok", f"{host}:{port} is free")


def _zones() -> Check:
    import zoneinfo

    try:
        zoneinfo.ZoneInfo("Asia/Shanghai")
    except (zoneinfo.ZoneInfoNotFoundError, OSError):
        return Check("time zones", "bad", "there is no time zone database", "pip install tzdata")
    return Check("time zones", "ok", "the time zone database is there")


def _exposure(settings: Settings) -> Check:
    from ksana.config import is_loopback

    host = settings.server.host
    if is_loopback(host):
        return Check("access", "ok", f"listens on {host}: only this machine can reach it")
    if settings.auth.keys:
        return Check("access", "ok", f"listens on {host} and asks for a key")
    if settings.server.insecure:
        text = f"listens on {host} without a key of the settings: anyone who reaches it may run jobs"
        return Check("access", "bad", text, "ksana key create, and no --insecure")
    return Check("access", "warn", f"listens on {host}; it starts only if the store has a key", "ksana key create")


def _writable(directory: Path) -> Check:
    there = directory
    while not there.exists():
        there = there.parent
    if not os.access(there, os.W_OK | os.X_OK):
        return Check(DIRECTORY, "bad", f"{there} cannot be written", f"chown $(id -u) {there}, or --data-dir")
    if there != directory:
        return Check(DIRECTORY, "warn", f"{directory} is not there yet", f"mkdir -p -m 700 {directory}")
    return Check(DIRECTORY, "ok", f"{directory} can be written")


def store_files(settings: Settings) -> list[Path]:
    """The files of a store that is one, or a directory of some: payloads and the sums of keys are in there."""
    scheme, _, rest = settings.storage.url.partition(":")
    path = Path("/" + rest.lstrip("/"))
    if scheme == "sqlite":
        found = [path.with_name(path.name + end) for end in ("", "-wal", "-shm")]
    else:
        found = sorted(path.iterdir()) if scheme == "json" and path.is_dir() else []
    return [file for file in found if file.is_file()]


def is_open_to_others(file: Path) -> bool:
    return bool(file.stat().st_mode & _OTHERS)


def _modes(files: list[Path]) -> Check:
    open_ones = [str(file) for file in files if is_open_to_others(file)]
    if open_ones:
        text = f"{', '.join(open_ones)} can be read by others on this machine"
        return Check(MODES, "warn", text, f"chmod 600 {' '.join(open_ones)}")
    return Check(MODES, "ok", "the files of the store are for their owner alone")


def _on_this_machine(directory: Path, mounts: Path) -> Check:
    """Locks and memory maps of files do not hold over a network."""
    try:
        lines = [line.split() for line in mounts.read_text().splitlines()]
    except OSError:
        return Check("file system", "ok", "of a kind this machine does not tell")
    holding = [line for line in lines if directory.is_relative_to(line[1])]
    kind = max(holding, key=lambda line: len(line[1]))[2] if holding else "unknown"
    if kind in _OVER_A_WIRE:
        text = f"{directory} is on {kind}: its locks cannot be relied on"
        return Check("file system", "bad", text, "--data-dir on a local disk, or --store postgresql://…")
    return Check("file system", "ok", f"{directory} is on {kind}")


def _sqlite(path: Path) -> Iterator[Check]:
    from ksana.stores.schema_checks import schema_in

    try:
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, timeout=2)) as database:
            [mode] = database.execute("PRAGMA journal_mode").fetchone()
            schema = schema_in(database)
    except sqlite3.Error as error:
        yield Check("store", "bad", f"{path} cannot be read: {error}", "ksana db migrate")
        return
    if mode != "wal":
        yield Check(JOURNAL, "warn", f"{path} is in {mode} mode: readers wait for writers", "ksana db migrate")
    else:
        yield Check(JOURNAL, "ok", f"{path} is in WAL mode")
    yield _migrations(schema)


def _migrations(schema: Schema) -> Check:
    if schema.trouble:
        return Check(MIGRATIONS, "bad", schema.trouble, "mend storage.url, or install the Ksana of this store")
    if schema.missing:
        return Check(MIGRATIONS, "warn", f"{schema.missing} not applied yet", "ksana db migrate")
    return Check(MIGRATIONS, "ok", f"all {schema.known} are applied")


def _server_store(scheme: str, url: str) -> Iterator[Check]:
    """The driver, the way there, and the schema; each only if the one before is well."""
    from ksana.stores.schema_checks import schema_of

    driver = _package(scheme)
    yield driver
    reached = _reachable(url)
    yield reached
    if driver.level == reached.level == "ok" and (schema := schema_of(url)) is not None:
        yield _migrations(schema)


def _package(scheme: str) -> Check:
    package, extra = _PACKAGES.get(scheme, ("", ""))
    if package and importlib.util.find_spec(package) is None:
        return Check("driver", "bad", f"{package} is not installed", f"pip install 'ksana-scheduler[{extra}]'")
    return Check("driver", "ok", f"the driver for {scheme} is installed")


def _reachable(url: str) -> Check:
    from ksana.config import mask_url

    parts = urlsplit(url)
    if parts.scheme == "unix":
        is_there = Path(parts.path).exists()
        text = f"{parts.path} is {'there' if is_there else 'not there'}"
        return Check("store", "ok" if is_there else "bad", text, "" if is_there else "start Redis")
    where = (parts.hostname or "127.0.0.1", parts.port or _PORTS.get(parts.scheme, 0))
    try:
        socket.create_connection(where, 3).close()
    except OSError as error:
        return Check("store", "bad", f"no connection to {mask_url(url)}: {error}", "start it, or mend storage.url")
    return Check("store", "ok", f"{where[0]}:{where[1]} can be reached")


def _skew(seen: dict[str, Any], now: datetime) -> Iterator[Check]:
    if seen["started_at"] is None:
        return
    theirs = datetime.fromisoformat(seen["started_at"]) + timedelta(seconds=seen["uptime_seconds"])
    apart = abs(now - theirs.astimezone(UTC))
    if apart > _MOST_SKEW:
        text = f"the clocks of server and this machine are {apart.total_seconds():.1f} s apart"
        yield Check("clock", "bad", text, "timedatectl set-ntp true, on both")
    else:
        yield Check("clock", "ok", "server and this machine agree on the time")
