"""What a Redis client raises while its server is away or refuses a command."""

from __future__ import annotations

import sys


def redis_errors() -> tuple[type[Exception], ...]:
    """For `except`. Whoever has handed us a client has loaded its package; those who do not need it are spared that."""
    package = sys.modules.get("redis.exceptions")
    return (OSError, TimeoutError) if package is None else (OSError, TimeoutError, package.RedisError)
