"""The way to a Redis server: one pool of connections, scripts by their digest, and what is asked of the server."""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import redis.asyncio
from redis import exceptions
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from ksana.domain.errors import InvalidArgument, StoreUnavailable
from ksana.stores.redis.packing import packing
from ksana.stores.redis.scripts import Script
from ksana.stores.redis.values import unfit

log = logging.getLogger(__name__)

DEFAULT_PREFIX = "ksana"

_CONNECT_SECONDS = 5
_ANSWER_SECONDS = 30
_CLOSE_SECONDS = 10
_OLDEST = (6, 2)

_GONE = (exceptions.ConnectionError, exceptions.TimeoutError, OSError)
# What a server says that cannot serve at the moment, or not us, as an error of its own or by its first word; anything
# else it says is a fault of ours.
_REFUSALS = (exceptions.ReadOnlyError, exceptions.OutOfMemoryError, exceptions.NoPermissionError)
_REFUSAL = re.compile(
    r"(LOADING|READONLY|OOM|MISCONF|MASTERDOWN|CLUSTERDOWN|TRYAGAIN|BUSY|NOREPLICAS|UNKILLABLE|NOAUTH|WRONGPASS|NOPERM"
    r"|MOVED|ASK|max number of clients)\b"
)


class Link:
    """Connections to one server, and the prefix under which everything lives there."""

    def __init__(self, url: str, pool_size: int, pool_lifetime: float) -> None:
        self._url, prefix = split_prefix(url)
        # The braces are a hash tag: a cluster keeps all keys with the same one together.
        self.prefix = f"{{{prefix}}}:"
        self._pool_size = pool_size
        self._lifetime = pool_lifetime
        self._renewed_at = 0.0
        self._client: redis.asyncio.Redis | None = None
        self._busy = 0
        self._idle = asyncio.Event()
        self._idle.set()

    async def open(self) -> None:
        """Connect, and see whether the server keeps what is given to it."""
        if self._client is not None:
            return
        pool = redis.asyncio.BlockingConnectionPool.from_url(
            self._url,
            max_connections=self._pool_size,
            timeout=_CONNECT_SECONDS,
            socket_connect_timeout=_CONNECT_SECONDS,
            socket_timeout=_ANSWER_SECONDS,
            socket_keepalive=True,
            # What was sent may have been done although no answer came: whoever asked decides what to do about it.
            retry=Retry(NoBackoff(), 0),
            protocol=2,
        )
        pool.connection_class = packing(pool.connection_class)
        try:
            pool.make_connection()  # type: ignore[no-untyped-call]
        except (TypeError, ValueError) as error:
            raise InvalidArgument.of("store", f"the address of Redis is not understood: {error}") from error
        self._client = redis.asyncio.Redis.from_pool(pool)
        self._renewed_at = time.monotonic()
        try:
            await self._check()
        except BaseException:
            await self.close()
            raise

    async def _check(self) -> None:
        told = await self.ask("INFO")
        version = str(told.get("redis_version", "0.0"))
        if tuple(int(part) for part in version.split(".")[:2]) < _OLDEST:
            raise StoreUnavailable(f"Redis {version} is too old; 6.2 and later will do")
        policy = told.get("maxmemory_policy")
        if policy != "noeviction":
            raise StoreUnavailable(
                f"Redis may throw away what it holds: maxmemory-policy is {policy}; "
                "run CONFIG SET maxmemory-policy noeviction, and say the same in redis.conf"
            )
        if not told.get("aof_enabled"):
            log.warning("Redis keeps no append-only file: a restart may take acknowledged changes with it")
        elif await self._config("appendfsync") not in ("always", None):
            log.warning("appendfsync is not always: a power loss may take the last changes with it")

    async def _config(self, name: str) -> str | None:
        """A setting of the server; None if it does not tell."""
        try:
            found = await self.ask("CONFIG GET", name)
        except (StoreUnavailable, exceptions.ResponseError):
            return None
        return None if name not in found else str(found[name])

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is None:
            return
        try:
            async with asyncio.timeout(_CLOSE_SECONDS):
                # First whoever is at work gets done.
                await self._idle.wait()
        except TimeoutError:
            log.warning("Redis did not answer in time; its connections are cut off")
        await client.aclose(close_connection_pool=True)

    async def run(self, script: Script, *args: Any) -> Any:
        """Run a script; it happens as a whole or not at all."""
        async with self._reach() as client:
            try:
                return await _do(client, "EVALSHA", script.digest, 1, self.prefix, *args)
            except exceptions.NoScriptError:
                await _do(client, "SCRIPT LOAD", script.text)
                return await _do(client, "EVALSHA", script.digest, 1, self.prefix, *args)

    async def ask(self, command: str, *args: Any) -> Any:
        """One command as it is."""
        async with self._reach() as client:
            return await _do(client, command, *args)

    def key(self, name: str) -> str:
        return self.prefix + name

    @asynccontextmanager
    async def _reach(self) -> AsyncIterator[redis.asyncio.Redis]:
        client = self._client
        if client is None:
            raise StoreUnavailable("Redis is not open")
        self._busy += 1
        self._idle.clear()
        try:
            await self._renew(client)
            yield client
        except exceptions.ReadOnlyError as error:
            # It was the primary once. Whatever the address means now, it is found by connecting again.
            await client.connection_pool.disconnect(inuse_connections=False)
            raise _unavailable(error) from error
        except _GONE as error:
            raise _unavailable(error) from error
        except exceptions.RedisError as error:
            is_refusal = isinstance(error, _REFUSALS) or _REFUSAL.match(str(error))
            if is_refusal or not isinstance(error, exceptions.ResponseError):
                raise _unavailable(error) from error
            raise
        except UnicodeEncodeError as error:
            raise unfit(error) from error
        finally:
            self._busy -= 1
            if self._busy == 0:
                self._idle.set()

    async def _renew(self, client: redis.asyncio.Redis) -> None:
        """Once in a lifetime, have the connections at rest replaced."""
        if self._lifetime and time.monotonic() - self._renewed_at > self._lifetime:
            self._renewed_at = time.monotonic()
            await client.connection_pool.disconnect(inuse_connections=False)


async def _do(client: redis.asyncio.Redis, *command: Any) -> Any:
    return await client.execute_command(*command)  # type: ignore[no-untyped-call]


def _unavailable(error: Exception) -> StoreUnavailable:
    return StoreUnavailable(f"Redis does not answer: {error or type(error).__name__}")


def split_prefix(url: str) -> tuple[str, str]:
    """The address as the driver knows it, and the prefix it names."""
    parts = urlsplit(url)
    said = dict(parse_qsl(parts.query, keep_blank_values=True))
    prefix = said.pop("prefix", DEFAULT_PREFIX)
    if not prefix or re.search(r"[{}\s]", prefix):
        raise InvalidArgument.of("store", "a prefix has at least one letter, and neither braces nor blanks")
    return urlunsplit(parts._replace(query=urlencode(said))), prefix
