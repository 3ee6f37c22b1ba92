"""Settings that follow from others, and the checks that need more than one value."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

from ksana.config.exposure import is_loopback
from ksana.config.kinds import RefusedError, span_text
from ksana.config.model import Settings
from ksana.config.names import BY_KEY
from ksana.config.urls import default_store_url, store_url
from ksana.domain.errors import Problem
from ksana.domain.policies import RetryStrategy

_MOST_THREADS = 1000


def derive(settings: Settings, cwd: Path, problems: list[Problem], warnings: list[str]) -> Settings:
    """Fill in what was not given and depends on what was."""
    settings = _storage(settings, cwd, problems, warnings)
    settings = _pool(settings, problems)
    settings = _misfire(settings, problems)
    settings = _addresses(settings)
    if "executor.python_threads" not in settings.sources:
        threads = min(settings.executor.worker_pool_size, _MOST_THREADS)
        settings = _follow(settings, "executor.python_threads", threads, "executor.worker_pool_size")
    retry = settings.executor.default_retry
    if retry.strategy is RetryStrategy.EXPONENTIAL and retry.initial_delay > retry.max_delay:
        delay = span_text(retry.initial_delay)
        problems.append(
            Problem("executor.default_retry.max_delay", f"must be at least initial_delay, {delay}; raise it")
        )
    return settings


def _follow(settings: Settings, key: str, value: object, origin: str) -> Settings:
    """Set a derived value; it has a source of its own only if what it follows from was given."""
    settings = settings.having(key, value)
    if origin not in settings.sources:
        return settings
    return settings.having("sources", {**settings.sources, key: f"derived from {origin}"})


def _storage(settings: Settings, cwd: Path, problems: list[Problem], warnings: list[str]) -> Settings:
    directory = cwd / settings.storage.dir
    settings = settings.having("storage.dir", directory)
    source = settings.sources.get("storage.url")
    if source is None:
        return _follow(settings, "storage.url", default_store_url(directory), "storage.dir")
    given = settings.storage.url
    try:
        url, ignored = store_url(given, directory, cwd)
    except RefusedError as refusal:
        problems.append(BY_KEY["storage.url"].problem(given, source, refusal))
        return settings
    if ignored:
        warnings.append(f"storage.url from {source}: {', '.join(ignored)} has no meaning here and is ignored")
    return settings.having("storage.url", url)


def _pool(settings: Settings, problems: list[Problem]) -> Settings:
    size, idle = settings.storage.pool_size, settings.storage.pool_idle
    if idle <= size:
        return settings
    if "storage.pool_idle" in settings.sources:
        problems.append(Problem("storage.pool_idle", f"is {idle}, more than storage.pool_size {size}; lower it"))
    return _follow(settings, "storage.pool_idle", size, "storage.pool_size")


def _misfire(settings: Settings, problems: list[Problem]) -> Settings:
    # A slot can wait one poll before it is seen and one more before it is planned; that is no misfire.
    least = 2 * settings.scheduler.poll_interval
    if settings.scheduler.misfire_threshold >= least:
        return settings
    if "scheduler.misfire_threshold" in settings.sources:
        given = span_text(settings.scheduler.misfire_threshold)
        message = f"is {given}, less than twice scheduler.poll_interval; give at least {span_text(least)}"
        problems.append(Problem("scheduler.misfire_threshold", message))
    return _follow(settings, "scheduler.misfire_threshold", least, "scheduler.poll_interval")


def _addresses(settings: Settings) -> Settings:
    public = settings.server.public_url
    if "server.allowed_hosts" in settings.sources:
        return settings
    if not is_loopback(settings.server.host):
        return _follow(settings, "server.allowed_hosts", ("*",), "server.host")
    for origin, name in (
        ("server.host", settings.server.host),
        ("server.public_url", urlsplit(public or "").hostname),
    ):
        settings = _answering(settings, name, origin) if name else settings
    return settings


def _answering(settings: Settings, host: str, origin: str) -> Settings:
    name = f"[{host.lower()}]" if ":" in host else host.lower()
    known = settings.server.allowed_hosts
    return settings if name in known else _follow(settings, "server.allowed_hosts", (*known, name), origin)
