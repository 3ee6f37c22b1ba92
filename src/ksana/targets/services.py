"""What a target may ask of the process it lives in: targets are built from these services alone."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime, timedelta
from typing import Any

import msgspec


class TargetServices(msgspec.Struct, frozen=True, kw_only=True):
    """Handed to every builder of the entry point group `ksana.targets`.

    `sleep` and `now` belong to the clock of the process, so that a virtual clock moves targets too.
    `functions` is looked up at every attempt and may grow after the targets are built.
    """

    sleep: Callable[[timedelta], Awaitable[None]]
    now: Callable[[], datetime]
    functions: Mapping[str, Callable[..., Any]] = {}
    python_threads: int = 4
    python_importable: tuple[str, ...] = ()
    python_lazy: bool = False
    http_policy: object = None
    http_global_headers: Mapping[str, str] = {}
    http_signing_secret: bytes | None = None
    max_response_bytes: int = 5 * 1024 * 1024

    def __repr__(self) -> str:
        # Headers and the secret must not reach a log through a traceback.
        return f"{type(self).__name__}(…)"
