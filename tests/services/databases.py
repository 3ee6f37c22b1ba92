"""Gives tests databases of their own: virgin ones, or one per worker that is emptied before each use."""

import itertools
from collections.abc import Callable, Coroutine

from tests.services.loop import LoopThread
from tests.services.service import SqlService, Visit

FreshDatabase = Callable[[], str]
Migrate = Callable[[str], Coroutine[object, object, None]]


class Databases:
    """Makes databases on one server; their names begin with what belongs to this worker."""

    def __init__(self, service: SqlService, server_url: str, prefix: str, loop: LoopThread) -> None:
        self._service = service
        self._server_url = server_url
        self._prefix = prefix
        self._loop = loop
        self._numbers = itertools.count(1)
        self._shared: SharedDatabase | None = None

    def fresh(self) -> str:
        """Make an empty database and give its URL."""
        return self._loop.run(self._service.create(self._server_url, f"{self._prefix}_{next(self._numbers)}"))

    def drop(self, url: str) -> None:
        self._loop.run(self._service.drop(self._server_url, [url.rpartition("/")[2]]))

    def close(self) -> None:
        if self._shared is not None:
            self._shared.close()

    @property
    def shared(self) -> "SharedDatabase":
        if self._shared is None:
            self._shared = SharedDatabase(self._service, self.fresh(), self._loop)
        return self._shared


class SharedDatabase:
    """One database for all the tests of a worker: bringing up a schema costs more than most tests do.

    Emptied means: no rows but those the migration itself left. Generated numbers go on counting.
    """

    def __init__(self, service: SqlService, url: str, loop: LoopThread) -> None:
        self._service = service
        self._url = url
        self._loop = loop
        # Kept open: to connect takes longer than to delete what a test has left.
        self._visit: Visit | None = None
        self._seeded: frozenset[str] = frozenset()

    def emptied(self, migrate: Migrate) -> str:
        """Give the URL: the schema is brought up the first time, the rows of the last test deleted later."""
        if self._visit is None:
            self._loop.run(migrate(self._url))
            self._visit = self._loop.run(self._service.visit(self._url))
            self._seeded = frozenset(self._loop.run(self._visit.filled_tables()))
        else:
            self._loop.run(self._visit.empty(self._seeded))
        return self._url

    def close(self) -> None:
        if self._visit is not None:
            self._loop.run(self._visit.close())
