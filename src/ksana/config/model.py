"""The settings as values, with the defaults. Attribute paths are the dotted keys of the file."""

from __future__ import annotations

from datetime import timedelta
from enum import StrEnum
from pathlib import Path
from typing import TypeVar

import msgspec

from ksana.domain.policies import (
    DEFAULT_CONNECT_TIMEOUT,
    DEFAULT_MAX_DELAY,
    DEFAULT_RETRY_DELAY,
    DEFAULT_TIMEOUT,
    RetryStrategy,
)

_S = TypeVar("_S", bound=msgspec.Struct)


class LogLevel(StrEnum):
    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class LogFormat(StrEnum):
    """`auto` is text on a terminal and JSON elsewhere."""

    AUTO = "auto"
    JSON = "json"
    TEXT = "text"


class RecoveryRule(StrEnum):
    """What becomes of a run whose node died under it."""

    RETRY = "retry"
    FAIL = "fail"


class _Discreet(msgspec.Struct, frozen=True):
    """A group that holds secrets: its repr shows no values, so none can leak into a log or a traceback."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}(…)"


class Server(msgspec.Struct, frozen=True):
    host: str = "127.0.0.1"
    port: int = 7100
    base_path: str = ""
    public_url: str | None = None
    graceful_timeout: timedelta = timedelta(seconds=10)
    insecure: bool = False
    allowed_hosts: tuple[str, ...] = ("localhost", "127.0.0.1", "[::1]")


class Storage(_Discreet, frozen=True):
    dir: Path = Path("data")
    url: str = "sqlite:///data/ksana.db"
    pool_size: int = 10
    pool_idle: int = 2
    pool_lifetime: timedelta = timedelta(minutes=30)
    retention: timedelta = timedelta(days=30)
    keep_last: int = 10


class DefaultRetry(msgspec.Struct, frozen=True):
    """Retries of jobs that do not say. While `max_retries` is None, each surface has its own number."""

    max_retries: int | None = None
    initial_delay: timedelta = DEFAULT_RETRY_DELAY
    strategy: RetryStrategy = RetryStrategy.FIXED
    max_delay: timedelta = DEFAULT_MAX_DELAY


class Executor(_Discreet, frozen=True):
    worker_pool_size: int = 4
    python_threads: int = 4
    python_importable: tuple[str, ...] = ()
    signing_secret: str | None = None
    request_timeout: timedelta = DEFAULT_TIMEOUT
    connect_timeout: timedelta = DEFAULT_CONNECT_TIMEOUT
    default_retry: DefaultRetry = DefaultRetry()
    global_headers: dict[str, str] = {}
    allow_net: tuple[str, ...] = ()
    max_response_bytes: int = 5 * 1024 * 1024


class Scheduler(msgspec.Struct, frozen=True):
    poll_interval: timedelta = timedelta(seconds=1)
    ahead: timedelta = timedelta(seconds=30)
    batch_limit: int = 500
    enable_seconds_field: bool = True
    timezone: str = "UTC"
    misfire_threshold: timedelta = timedelta(seconds=5)
    misfire_grace: timedelta = timedelta(seconds=1)
    lease: timedelta = timedelta(seconds=10)
    max_reclaims: int = 3


class Callback(msgspec.Struct, frozen=True):
    base_url: str | None = None
    token_ttl: timedelta = timedelta(hours=1)
    by_ids: bool = True


class Alerts(_Discreet, frozen=True):
    urls: tuple[str, ...] = ()


class Recovery(msgspec.Struct, frozen=True):
    running: RecoveryRule = RecoveryRule.RETRY


class Auth(_Discreet, frozen=True):
    keys: tuple[str, ...] = ()


class Logging(msgspec.Struct, frozen=True):
    level: LogLevel = LogLevel.INFO
    format: LogFormat = LogFormat.AUTO


class Metrics(msgspec.Struct, frozen=True):
    enabled: bool = True


class Settings(msgspec.Struct, frozen=True):
    """Everything that can be configured. `sources` says where each value that is not a default came from."""

    server: Server = Server()
    storage: Storage = Storage()
    executor: Executor = Executor()
    scheduler: Scheduler = Scheduler()
    callback: Callback = Callback()
    recovery: Recovery = Recovery()
    alerts: Alerts = Alerts()
    auth: Auth = Auth()
    logging: Logging = Logging()
    metrics: Metrics = Metrics()
    sources: dict[str, str] = {}
    warnings: tuple[str, ...] = ()

    def value(self, key: str) -> object:
        """The value at a dotted key such as `executor.default_retry.max_retries`."""
        found: object = self
        for part in key.split("."):
            found = getattr(found, part)
        return found

    def having(self, key: str, value: object) -> Settings:
        """A copy with the value at a dotted key replaced."""
        return _replaced(self, key.split("."), value)


def _replaced(struct: _S, path: list[str], value: object) -> _S:
    head, *rest = path
    return msgspec.structs.replace(struct, **{head: _replaced(getattr(struct, head), rest, value) if rest else value})
