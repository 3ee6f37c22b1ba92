"""Somebody else who reads a file over and over, in a process of their own."""

import json
import multiprocessing
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any


@contextmanager
def read_all_the_time(path: Path) -> Iterator[None]:
    """Whoever reads the file, never finds it broken or gone."""
    context = multiprocessing.get_context("forkserver")
    stop, broken = context.Event(), context.Queue()
    reader = context.Process(target=_read, args=(path, stop, broken), daemon=True)
    reader.start()
    try:
        yield
    finally:
        stop.set()
    assert broken.get(timeout=30) == ""
    reader.join(30)
    reader.close()


def _read(path: Path, stop: Event, broken: Any) -> None:
    seen = 0
    # Several times a save, and not so often that reading takes the processor from those who write.
    while not stop.wait(0.002):
        try:
            text = path.read_bytes()
            json.loads(text)
            seen += 1
        except FileNotFoundError:
            if seen:
                broken.put("the file was gone")
                return
        except ValueError as error:
            broken.put(f"{error}: {text[:200]!r}")
            return
    broken.put("" if seen else "nothing was ever read")
