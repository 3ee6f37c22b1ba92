"""Connections that pack commands in C. The driver does so only where it blocks, and a large turn has thousands of
arguments: packing them in Python costs more than anything else in it."""

from __future__ import annotations

from typing import Any

import hiredis
from redis.asyncio.connection import AbstractConnection


def packing(connection: type[AbstractConnection]) -> type[AbstractConnection]:
    """That kind of connection, whichever way it reaches its server."""
    return type(f"Packing{connection.__name__}", (_Packing, connection), {})


class _Packing(AbstractConnection):
    def pack_command(self, *args: Any) -> list[bytes]:
        try:
            # A command may be two words, such as SCRIPT LOAD, which the server wants one by one.
            return [hiredis.pack_command((*args[0].split(), *args[1:]))]
        except TypeError:
            # Something else than text, bytes and numbers: the driver knows what to do about it, or what to say.
            return super().pack_command(*args)
