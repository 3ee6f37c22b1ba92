"""What an address says of a store without asking it: its kind, and for one in files how much room they take."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

_KINDS = {"postgres": "postgresql", "mariadb": "mysql", "rediss": "redis", "unix": "redis"}


def kind_of(url: str) -> str:
    """`sqlite`, `json`, `postgresql`, `mysql` or `redis`."""
    scheme = url.partition(":")[0].lower()
    return _KINDS.get(scheme, scheme)


def size_of(url: str) -> int | None:
    """How many bytes the files of a store take up; None for a server, which may hold much else."""
    match kind_of(url):
        case "sqlite":
            file = Path(url.partition("://")[2].removeprefix("/"))
            return _bytes([file, file.with_name(f"{file.name}-wal")])
        case "json":
            return _bytes(Path(url.partition(":")[2].removeprefix("//")).glob("*.json*"))
        case _:
            return None


def _bytes(files: Iterable[Path]) -> int:
    total = 0
    for file in files:
        # It may have been renamed or folded into another since it was listed.
        with suppress(OSError):
            total += file.stat().st_size
    return total
