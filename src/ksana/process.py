"""What a process of Ksana does around its work: log to stderr, and go on until somebody tells it to stop."""

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
# Work comes by the hundred and is gone in milliseconds, and next to nothing of it refers to itself: with the defaults,
# made for scripts, the cycle collector looks at all of it over and over.
_COLLECTED: Final = (10_000, 20, 20)

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

    gc.set_threshold(*_COLLECTED)
    _loop_runner()(until_told())


def _loop_runner() -> Callable[[Coroutine[Any, Any, None]], None]:
    try:
        import uvloop
    except ImportError:
        return asyncio.run
    return uvloop.run
