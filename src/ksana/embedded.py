"""Ksana in a program of one's own: jobs are functions with a decorator, and the program is the server."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ksana.periodic.definitions import Definitions
from ksana.periodic.syncing import sync

if TYPE_CHECKING:
    from ksana.config import Settings
    from ksana.engine.engine import Engine


class Ksana(Definitions):
    """Jobs in code, and what runs them.

    `store_url` says where they are kept, as `--store` does; `name` tells the programs of one store apart. Further
    settings go by the names of the command line (`workers=8`). Nothing is read or written before it is started.
    """

    def __init__(self, store_url: str | None = None, *, name: str = "app", **settings: Any) -> None:
        super().__init__()
        self.name = name
        self._settings: dict[str, Any] = {"store": store_url, **settings}

    def serve(self, *, host: str | None = None, port: int | None = None, prune: bool = False) -> None:
        """Run schedules, functions and the HTTP server until SIGINT or SIGTERM. With `prune`, jobs that are gone from
        the code are deleted."""
        from ksana.app import serve
        from ksana.process import run_until_told

        settings = self._started(host=host, port=port)
        run_until_told(lambda stop: serve(settings, stop, self.functions, partial(self._sync, prune=prune)))

    def work(self, *queues: str, prune: bool = False) -> None:
        """The same without the HTTP server, for these queues."""
        from ksana.app import work
        from ksana.process import run_until_told

        settings = self._started()
        run_until_told(lambda stop: work(settings, stop, self.functions, queues, partial(self._sync, prune=prune)))

    @asynccontextmanager
    async def running(self, *, prune: bool = False) -> AsyncIterator[Engine]:
        """Run schedules and functions beside what else this program does, without an HTTP server."""
        from ksana.app import Program

        settings = self._loaded()
        program = Program(settings, self.functions)
        async with program.running(settings.server.port, is_exposed=False) as engine:
            await self._sync(engine, prune)
            yield engine

    async def _sync(self, engine: Engine, prune: bool) -> None:
        await sync(engine, self.definitions, self.name, prune=prune)

    def _started(self, **flags: Any) -> Settings:
        from ksana.process import start_logging

        settings = self._loaded(**flags)
        # A program that has set up its own logs keeps them.
        if not logging.getLogger().handlers:
            start_logging(settings)
        return settings

    def _loaded(self, **flags: Any) -> Settings:
        from ksana.config import environment, load_settings

        given = {name: value for name, value in flags.items() if value is not None}
        return load_settings(self._settings | given, environment(), None, Path.cwd())
