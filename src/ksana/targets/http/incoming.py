"""Whether something has come in on a connection that nobody reads: it is asked before every use of an idle one.

`select.poll` gives up the interpreter's lock for a look that never waits. Under load another thread takes it then, and
keeps it for longer than a whole exchange takes. The system's own `poll`, called by way of ctypes, does not.
"""

from __future__ import annotations

import ctypes
import select
from collections.abc import Callable
from typing import Any

Incoming = Callable[[], bool]


class _Asked(ctypes.Structure):
    """POSIX's struct pollfd."""

    _fields_ = [("fd", ctypes.c_int), ("events", ctypes.c_short), ("revents", ctypes.c_short)]


def _system_poll() -> Callable[[Any, int, int], int] | None:
    try:
        poll = ctypes.PyDLL(None).poll
    except (AttributeError, OSError, TypeError):  # Windows
        return None
    poll.restype = ctypes.c_int
    return poll


_poll = _system_poll()


def incoming(fd: int) -> Incoming:
    """Answers whether there is something to read on this socket, be it only its end."""
    if (poll := _poll) is None:
        return lambda: bool(select.select([fd], [], [], 0)[0])
    asked = ctypes.byref(_Asked(fd, select.POLLIN, 0))
    # Interrupted, or out of memory: then nothing is known, and a connection that may be dead is not used.
    return lambda: poll(asked, 1, 0) != 0
