"""An event loop on its own thread: fixtures can talk to servers whether or not a test's loop is running."""

import asyncio
import threading
from collections.abc import Coroutine
from types import TracebackType
from typing import TypeVar

T = TypeVar("T")


class LoopThread:
    """Run coroutines from anywhere and wait for what they give."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="test-services", daemon=True)

    def __enter__(self) -> "LoopThread":
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def run(self, work: Coroutine[object, object, T], timeout: float = 60) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(timeout)
