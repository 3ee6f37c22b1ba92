"""Where a measurement keeps its data: empty databases on the servers the tests use, or a file; all gone at the end."""

from __future__ import annotations

import itertools
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from fresh import HERE, FailedError, say

ROOT = HERE.parent
SCRATCH = ROOT / ".bench"

sys.path.insert(0, str(ROOT))

from tests.services.loop import LoopThread  # noqa: E402
from tests.services.mysql import MySql  # noqa: E402
from tests.services.names import RunName  # noqa: E402
from tests.services.postgres import Postgres  # noqa: E402
from tests.services.provide import Servers  # noqa: E402
from tests.services.redis import Redis  # noqa: E402
from tests.services.service import SqlService  # noqa: E402

_REDIS = Redis()
_SQL: dict[str, SqlService] = {"postgres": Postgres(), "mysql": MySql()}


class Places:
    """Gives out empty stores by URL."""

    def __init__(self, servers: Servers, loop: LoopThread, directory: Path) -> None:
        self._servers = servers
        self._loop = loop
        self._directory = directory
        self._numbers = itertools.count(1)

    @property
    def prefix(self) -> str:
        """How everything begins that is put on a shared Redis."""
        return f"{self._servers.run}_{next(self._numbers)}"

    def server(self, store: str) -> str:
        found = self._servers.found[store]
        if found.url is None:
            raise FailedError(f"no {store}: {found.how}")
        return found.url

    @contextmanager
    def directory(self) -> Iterator[Path]:
        path = self._directory / str(next(self._numbers))
        path.mkdir(parents=True)
        try:
            yield path
        finally:
            shutil.rmtree(path, ignore_errors=True)

    @contextmanager
    def fresh(self, store: str) -> Iterator[str]:
        """The URL of an empty store, for as long as the block lasts."""
        if store == "sqlite":
            with self.directory() as path:
                yield f"sqlite:///{path / 'ksana.db'}"
            return
        if store == "redis":
            server, name = self.server(store), self.prefix
            try:
                yield f"{server}?prefix={name}"
            finally:
                left = self._loop.run(_REDIS.leftovers(server, in_use_too=True))
                self._loop.run(_REDIS.drop(server, [key for key in left if name in key]))
            return
        service, server = _SQL[store], self.server(store)
        name = f"{self._servers.run}_{next(self._numbers)}"
        url = self._loop.run(service.create(server, name))
        try:
            yield url
        finally:
            self._loop.run(service.drop(server, [name]))


@contextmanager
def open_places() -> Iterator[Places]:
    now = datetime.now(UTC)
    SCRATCH.mkdir(exist_ok=True)
    # Neither git nor the linters look into it.
    (SCRATCH / ".gitignore").write_text("*\n")
    with LoopThread() as loop:
        servers = Servers(RunName.of_this_process(now), loop, say)
        directory = SCRATCH / "data" / str(servers.run)
        _sweep(directory.parent, now)
        try:
            servers.open(now)
            yield Places(servers, loop, directory)
        finally:
            servers.close()
            shutil.rmtree(directory, ignore_errors=True)


def _sweep(data: Path, now: datetime) -> None:
    """Remove what a run that was killed left behind; a million jobs take a gigabyte."""
    for path in data.glob("*"):
        owner = RunName.found_in(path.name)
        if owner is not None and owner.is_abandoned(now):
            shutil.rmtree(path, ignore_errors=True)
