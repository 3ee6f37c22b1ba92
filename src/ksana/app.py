"""Composition: from settings to a running program. The only place that names concrete classes."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import uvicorn
from starlette.types import ASGIApp

import ksana
from ksana.api import chains, jobs, ops, queue, tasks, v2
from ksana.api.kit import KeyRing, build_app
from ksana.api.services import JobDefaults, Services, Setting, StoreFacts
from ksana.api.stored import StoredAnswers, StoredKeys
from ksana.config import Settings, check_exposure, is_loopback, mask_url, settings_report
from ksana.console import Console
from ksana.domain.fires import Lateness
from ksana.domain.keys import Scope, StoredKey, digest_of, parse_key
from ksana.domain.policies import OnUncertain, Retry, Timeouts
from ksana.domain.ports import Observer, Store, Target
from ksana.engine.clock import SystemClock
from ksana.engine.contexts import Contexts
from ksana.engine.engine import Engine, EngineOptions
from ksana.engine.keeper import Upkeep
from ksana.engine.queue_worker import QueueWorker
from ksana.handling.workers import HandlerWorkers, at_work, of_queues
from ksana.observe.metrics import MetricsObserver
from ksana.observe.queue_rates import QueueRates
from ksana.observe.run_log import LogObserver
from ksana.periodic.handlers import Handler
from ksana.stores.open import open_store
from ksana.stores.size import kind_of, size_of
from ksana.targets.hooks import build_hooks
from ksana.targets.http import TargetPolicy
from ksana.targets.registry import load_targets
from ksana.targets.services import TargetServices

log = logging.getLogger("ksana")

Functions = Mapping[str, Callable[..., Any]]
Begin = Callable[[Engine], Awaitable[None]]


def store_of(settings: Settings) -> Store:
    """The store the settings name, not yet open."""
    storage = settings.storage
    return open_store(
        storage.url,
        pool_size=storage.pool_size,
        pool_idle=storage.pool_idle,
        pool_lifetime=storage.pool_lifetime.total_seconds(),
    )


class Program:
    """A node: its store, its engine and its HTTP server, in one event loop."""

    def __init__(
        self,
        settings: Settings,
        functions: Functions | None = None,
        queues: tuple[str, ...] = (),
        handlers: Sequence[Handler] = (),
    ) -> None:
        self.settings = settings
        self.clock = SystemClock()
        self.store = store_of(settings)
        self.metrics = MetricsObserver(self.clock.now, version=ksana.__version__)
        self.queue_rates = QueueRates()
        self.targets = self._load_targets(functions or {})
        self.hooks = build_hooks(
            settings.alerts.urls, policy=self._policy(), now=self.clock.now, signing_secret=self._signing_secret()
        )
        self._queues = queues
        self._functions = functions or {}
        self._handlers = of_queues(handlers, queues)

    def _load_targets(self, functions: Functions) -> dict[str, Target]:
        executor = self.settings.executor
        services = TargetServices(
            sleep=self.clock.sleep,
            now=self.clock.now,
            functions=functions,
            # A node without functions of its own leaves it to the workers to know theirs.
            python_lazy=not functions,
            python_threads=executor.python_threads,
            python_importable=executor.python_importable,
            http_policy=self._policy(),
            http_global_headers=executor.global_headers,
            http_signing_secret=self._signing_secret(),
            max_response_bytes=executor.max_response_bytes,
        )
        return load_targets(services)

    def _policy(self) -> TargetPolicy:
        is_private = is_loopback(self.settings.server.host)
        allowed = self.settings.executor.allow_net
        return TargetPolicy.of(allow_loopback=is_private, allow_private=is_private, allowed=allowed)

    def _signing_secret(self) -> bytes | None:
        secret = self.settings.executor.signing_secret
        return secret.encode() if secret else None

    def engine(self, port: int, observers: list[Observer] | None = None) -> Engine:
        """The engine of this node, which tells targets to call back at the given port unless the settings say where."""
        settings = self.settings
        scheduler = settings.scheduler
        options = EngineOptions(
            name=f"{socket.gethostname()}:{os.getpid()}",
            workers=settings.executor.worker_pool_size,
            queues=self._queues or EngineOptions().queues,
            batch=scheduler.batch_limit,
            poll=scheduler.poll_interval,
            lease=scheduler.lease,
            max_reclaims=scheduler.max_reclaims,
            on_uncertain=OnUncertain(settings.recovery.running.value),
            grace=settings.server.graceful_timeout,
            lateness=Lateness(scheduler.misfire_threshold, scheduler.misfire_grace),
            upkeep=Upkeep(settings.storage.retention or None, settings.storage.keep_last),
            callback_base=_callback_base(settings, port),
            token_ttl=settings.callback.token_ttl,
        )
        return Engine(self.store, self.targets, options, clock=self.clock, observers=observers or [], hooks=self.hooks)

    def web(self, engine: Engine) -> ASGIApp:
        """The HTTP side."""

        async def metrics() -> tuple[bytes, str]:
            await self.metrics.refresh(self.store, self.clock.now())
            return self.metrics.render()

        services = Services(
            engine=engine,
            version=ksana.__version__,
            defaults=job_defaults(self.settings),
            metrics=metrics if self.settings.metrics.enabled else None,
            callback_by_ids=self.settings.callback.by_ids,
            is_exposed=not is_loopback(self.settings.server.host),
            queue_rates=self.queue_rates,
            settings=shown_settings(self.settings),
            store=StoreFacts(kind_of(self.settings.storage.url), lambda: size_of(self.settings.storage.url)),
        )
        keys = KeyRing(StoredKeys(self.store, given_keys(self.settings)), time.monotonic)
        app = build_app(
            [v2.surface(), jobs.surface(), tasks.surface(), chains.surface(), queue.surface(), ops.surface()],
            services,
            keys=keys,
            idempotency=StoredAnswers(self.store),
            version=ksana.__version__,
            allowed_hosts=self.settings.server.allowed_hosts,
        )
        return Console(app)

    @asynccontextmanager
    async def pulling(self, engine: Engine) -> AsyncIterator[None]:
        """The functions of this node see to the items of its queues; at the end to those they have begun. A queue that
        has handlers is left to them."""
        options = engine.options
        contexts = Contexts(await self.store.identity(), "")
        handled = {handler.queue for handler in self._handlers}
        workers = [
            QueueWorker(
                engine.queue,
                self.store,
                self.clock,
                self.targets["python"],
                contexts,
                name=name,
                holder=options.name,
                functions=self._functions,
                capacity=options.workers,
                retry=job_defaults(self.settings).retry,
            )
            for name in (options.queues if self._functions else ())
            if name not in handled
        ]
        engine.workers += workers
        async with self.handling(engine), at_work(workers, options.grace):
            yield

    @asynccontextmanager
    async def handling(self, engine: Engine) -> AsyncIterator[None]:
        """The handlers of this node see to the items they are for."""
        workers = HandlerWorkers(
            self._handlers,
            engine.queue,
            self.store,
            self.clock,
            Contexts(await self.store.identity(), ""),
            holder=engine.options.name,
            retry=job_defaults(self.settings).retry,
        )
        engine.workers += workers.workers
        async with workers.at_work(engine.options.grace):
            yield

    @asynccontextmanager
    async def running(self, port: int, *, is_exposed: bool) -> AsyncIterator[Engine]:
        """Store open, engine at work; everything is put away at the end, work under way first.

        `is_exposed` says that a server will listen at the host of the settings, which then needs a key.
        """
        await self.store.open()
        engine: Engine | None = None
        try:
            if is_exposed:
                check_exposure(self.settings, stored_keys=bool(await self.store.keys()))
            trace_id = Contexts(await self.store.identity(), "").trace_id
            engine = self.engine(port, [LogObserver(self.clock.now, trace_id), self.metrics, self.queue_rates])
            self.metrics.watch_executing(lambda: engine.executing)
            await engine.start()
            yield engine
        finally:
            if engine is not None:
                await engine.stop()
            for target in self.targets.values():
                await target.close()
            for hook in self.hooks:
                await hook.close()
            await self.store.close()


def _base_url(settings: Settings, port: int) -> str:
    host = settings.server.host
    host = f"[{host}]" if ":" in host else host
    return (settings.server.public_url or f"http://{host}:{port}{settings.server.base_path}").rstrip("/")


def _callback_base(settings: Settings, port: int) -> str:
    # This path takes the words of every surface; that of /api/v2 only its own.
    return settings.callback.base_url or f"{_base_url(settings, port)}/api/v1/callbacks"


def job_defaults(settings: Settings) -> JobDefaults:
    """What a job gets when it does not say."""
    executor = settings.executor
    retry = executor.default_retry
    return JobDefaults(
        retry=Retry(
            max_attempts=1 + (retry.max_retries or 0),
            strategy=retry.strategy,
            initial_delay=retry.initial_delay,
            max_delay=retry.max_delay,
        ),
        timeouts=Timeouts(total=executor.request_timeout, connect=executor.connect_timeout),
        on_uncertain=OnUncertain(settings.recovery.running.value),
        timezone=settings.scheduler.timezone,
        seconds_field=settings.scheduler.enable_seconds_field,
        max_retries=retry.max_retries,
    )


def shown_settings(settings: Settings) -> list[Setting]:
    """Every setting as it may be shown to whoever may look."""
    return [
        Setting(name=row.key, value=row.value, source=row.source, env=row.env, description=row.meaning)
        for row in settings_report(settings)
    ]


def given_keys(settings: Settings) -> list[StoredKey]:
    """Keys the operator gave by the settings: full power, not in the store."""
    found = []
    for text in settings.auth.keys:
        presented = parse_key(text)
        if presented is not None:
            digest = digest_of(presented.secret)
            found.append(StoredKey(presented.id, "settings", digest, frozenset({Scope.ADMIN}), SystemClock().now()))
    return found


class _Server(uvicorn.Server):
    """uvicorn inside our loop: signals are ours to handle, so that the engine stops before the process does."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.listening = asyncio.Event()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.listening.set()


async def serve(
    settings: Settings,
    stop: asyncio.Event,
    functions: Functions | None = None,
    begin: Begin | None = None,
    handlers: Sequence[Handler] = (),
) -> None:
    """Run a node with its HTTP server until `stop` is set. What `begin` does is done before the server listens."""
    program = Program(settings, functions, handlers=handlers)
    listener = _bind(settings)
    port: int = listener.getsockname()[1]
    try:
        async with program.running(port, is_exposed=True) as engine:
            if begin is not None:
                await begin(engine)
            server = _Server(
                uvicorn.Config(
                    program.web(engine),
                    log_config=None,
                    access_log=False,
                    lifespan="off",
                    http="httptools",
                    server_header=False,
                    root_path=settings.server.base_path,
                    timeout_graceful_shutdown=max(1, round(settings.server.graceful_timeout.total_seconds())),
                )
            )
            serving = asyncio.create_task(server.serve([listener]))
            await _first_of(serving, server.listening.wait())
            if not serving.done():
                announce(settings, port)
                async with program.handling(engine):
                    await _first_of(serving, stop.wait())
                    log.info("stopping: no new work, waiting for what is under way")
                    # Whoever waits for items would be waited for.
                    engine.queue.close()
                    engine.feed.close()
                    server.should_exit = True
            await serving
    finally:
        listener.close()
    log.info("stopped")


async def _first_of(serving: asyncio.Task[None], event: Coroutine[Any, Any, object]) -> None:
    """Wait for the event; a server that ends by itself ends the wait too, or the node would live on unreachable."""
    waiting = asyncio.ensure_future(event)
    try:
        await asyncio.wait({serving, waiting}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        waiting.cancel()


async def work(
    settings: Settings,
    stop: asyncio.Event,
    functions: Functions,
    queues: tuple[str, ...],
    begin: Begin | None = None,
    handlers: Sequence[Handler] = (),
) -> None:
    """Run a node without an HTTP server until `stop` is set."""
    program = Program(settings, functions, queues, handlers)
    async with program.running(settings.server.port, is_exposed=False) as engine:
        if begin is not None:
            await begin(engine)
        async with program.pulling(engine):
            log.info("working for %s", mask_url(settings.storage.url))
            await stop.wait()
            log.info("stopping: no new work, waiting for what is under way")
    log.info("stopped")


def announce(settings: Settings, port: int) -> None:
    """Say where it listens and what it stands on."""
    url = _base_url(settings, port)
    log.info(
        "ksana %s listens on %s, store %s, %s workers",
        ksana.__version__,
        url,
        mask_url(settings.storage.url),
        settings.executor.worker_pool_size,
        extra={"url": url},
    )


def _bind(settings: Settings) -> socket.socket:
    host, port = settings.server.host, settings.server.port
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        raise PortTaken(
            f"cannot listen on {host}:{port} ({error.strerror}); choose another with --port, or --port 0 for any"
        ) from error
    listener.set_inheritable(False)
    return listener


class PortTaken(Exception):
    """The port cannot be had."""
