"""What a process of Ksana does around its work: log to stderr, collect garbage at its ease, and go on until somebody
tells it to stop."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import sys
from collections.abc import Callable, Coroutine
from typing import Any, Final

from ksana.api.kit.request_ids import current_request_id
from ksana.config import Settings
from ksana.observe.logs import setup_logging

INTERRUPTED: Final = 130
# How many new objects the cycle collector waits for. A busy node holds tens of thousands that are about to go by
# themselves, and next to nothing of it are cycles: at 700, the default, it looks at the same ones over and over.
_YOUNG: Final = 50_000

_log = logging.getLogger("ksana")


def start_logging(settings: Settings) -> None:
    """Logs to stderr, as the settings say."""
    secrets = [*settings.auth.keys, settings.executor.signing_secret or ""]
    setup_logging(
        settings.logging.level,
        settings.logging.format,
        sys.stderr,
        is_tty=sys.stderr.isatty(),
        request_id=current_request_id,
        secrets=[secret for secret in secrets if secret],
    )
    for warning in settings.warnings:
        _log.warning(warning)


def collect_at_ease() -> None:
    """Have the cycle collector look less often, and never again at what the program consists of."""
    _, middle, old = gc.get_threshold()
    gc.set_threshold(_YOUNG, middle, old)
    gc.collect()
    gc.freeze()


def run_until_told(main: Callable[[asyncio.Event], Coroutine[Any, Any, None]]) -> None:
    """Run until SIGINT or SIGTERM sets the event; a second signal does not wait any longer."""

    async def until_told() -> None:
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()

        def told() -> None:
            if stop.is_set():
                _log.warning("stopped at once; what was under way is found by its lapsed lease")
                # Anything gentler could itself wait: for a target, a thread or the store.
                os._exit(INTERRUPTED)
            stop.set()

        for name in (signal.SIGINT, signal.SIGTERM):
            try:
                loop.add_signal_handler(name, told)
            except NotImplementedError:
                # Windows has no such handlers in its event loop; there Ctrl-C arrives as KeyboardInterrupt.
                signal.signal(name, lambda *_: loop.call_soon_threadsafe(told))
        await main(stop)

    collect_at_ease()
    _loop_runner()(until_told())


def _loop_runner() -> Callable[[Coroutine[Any, Any, None]], None]:
    try:
        import uvloop
    except ImportError:
        return asyncio.run
    return uvloop.run
