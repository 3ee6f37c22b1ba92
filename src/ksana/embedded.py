"""Ksana in a program of one's own: jobs and handlers are functions with a decorator, and the program is the server, a
worker, or a guest of a server elsewhere."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ksana.domain.errors import InvalidArgument, InvalidState
from ksana.periodic.definitions import Definitions
from ksana.periodic.syncing import sync

if TYPE_CHECKING:
    from starlette.types import ASGIApp

    from ksana.config import Settings
    from ksana.engine.engine import Engine
    from ksana.mounting import Live
    from ksana.periodic.handlers import Handler


class Ksana(Definitions):
    """Jobs and handlers in code, and what runs them.

    `store_url` says where they are kept, as `--store` does; `name` tells the programs of one store apart. Further
    settings go by the names of the command line (`workers=8`). Nothing is read or written before it is started.

    With the address of a server, `"http://host:7100"`, and a `key` if it wants one, handlers pull from there.
    """

    def __init__(
        self, store_url: str | None = None, *, name: str = "app", key: str | None = None, **settings: Any
    ) -> None:
        super().__init__()
        self.name = name
        self.live: Live | None = None
        self._key = key
        self._settings: dict[str, Any] = {"store": store_url, **settings}

    def serve(self, *, host: str | None = None, port: int | None = None, prune: bool = False) -> None:
        """Run schedules, functions, handlers and the HTTP server until SIGINT or SIGTERM. With `prune`, jobs that are
        gone from the code are deleted."""
        from ksana.app import serve
        from ksana.process import run_until_told

        self._require_store("serve()", "work()")
        settings = self._started(host=host, port=port)
        begin = partial(self._sync, prune=prune)
        run_until_told(lambda stop: serve(settings, stop, self.functions, begin, self.handlers))

    def work(self, *queues: str, prune: bool = False, config: Path | None = None, **settings: Any) -> None:
        """The same without the HTTP server, for these queues. Settings given here win over those of the app."""
        from ksana.process import run_until_told

        if server := self._server(settings.get("store")):
            from ksana.handling.joined import work_for

            handlers = self._joining(queues)
            loaded = self._started(config, **{**settings, "store": None})
            run_until_told(partial(work_for, server, self._key, loaded.server.graceful_timeout, handlers))
            return
        from ksana.app import work

        loaded = self._started(config, **settings)
        begin = partial(self._sync, prune=prune)
        run_until_told(lambda stop: work(loaded, stop, self.functions, queues, begin, self.handlers))

    @asynccontextmanager
    async def running(self, *, prune: bool = False) -> AsyncIterator[Engine]:
        """Run schedules, functions and handlers beside what else this program does, without an HTTP server."""
        from ksana.app import Program
        from ksana.mounting import Live

        self._require_store("running()", "handling()")
        if self.live is not None:
            raise InvalidState("this app is running already; enter running() once")
        settings = self._loaded()
        program = Program(settings, self.functions, handlers=self.handlers)
        async with program.running(settings.server.port, is_exposed=False) as engine:
            await self._sync(engine, prune)
            async with program.handling(engine):
                self.live = Live(program, engine)
                try:
                    yield engine
                finally:
                    self.live = None

    @asynccontextmanager
    async def handling(self, *queues: str) -> AsyncIterator[None]:
        """Have the handlers pull from the server this app has joined, beside what else this program does."""
        from ksana.handling.joined import joined

        server = self._server()
        if server is None:
            raise InvalidArgument.of("handling", "this app has a store of its own; enter running(), which does it too")
        handlers = self._joining(queues)
        async with joined(server, self._key, self._loaded().server.graceful_timeout, handlers):
            yield

    def asgi(self) -> ASGIApp:
        """The HTTP API as an ASGI app, to be mounted in another or served on its own. It runs what `running()` runs,
        from its own lifespan if it is told of one, else with `running()` in the lifespan of whoever mounts it."""
        from ksana.mounting import Mounted

        self._require_store("asgi()", "handling()")
        return Mounted(self)

    async def _sync(self, engine: Engine, prune: bool) -> None:
        await sync(engine, self.definitions, self.name, prune=prune)

    def _server(self, said: str | None = None) -> str | None:
        """The address of the server this app joins, if it does."""
        place: str | None = said or self._settings["store"]
        return place if place is not None and place.lower().startswith(("http://", "https://")) else None

    def _require_store(self, wanted: str, instead: str) -> None:
        if server := self._server():
            raise InvalidArgument.of("store", f"{server} is a server and {wanted} needs a store; call {instead}")

    def _joining(self, queues: tuple[str, ...]) -> list[Handler]:
        """The handlers that can work for a server elsewhere, if that is all there is to run."""
        from ksana.handling.workers import some_of_queues

        if names := list(self.definitions):
            raise InvalidArgument.of(
                "store",
                f"jobs in code ({', '.join(names[:3])}{', …' if names[3:] else ''}) are kept in a store; name the one "
                "of the server (postgresql://…, redis://…), or leave only handlers in an app that joins it by its "
                "address",
            )
        return some_of_queues(self.handlers, queues)

    def _started(self, config: Path | None = None, **flags: Any) -> Settings:
        from ksana.process import start_logging

        settings = self._loaded(config, **flags)
        # A program that has set up its own logs keeps them.
        if not logging.getLogger().handlers:
            start_logging(settings)
        return settings

    def _loaded(self, config: Path | None = None, **flags: Any) -> Settings:
        from ksana.config import environment, load_settings

        given = {name: value for name, value in flags.items() if value is not None}
        own = {name: value for name, value in self._settings.items() if name != "store" or not self._server()}
        return load_settings(own | given, environment(), config, Path.cwd())
