from __future__ import annotations

from typing import Any

import pytest
from redis.asyncio import Connection, SSLConnection, UnixDomainSocketConnection
from redis.asyncio.connection import AbstractConnection
from redis.exceptions import DataError

from ksana.stores.redis.packing import packing


@pytest.mark.parametrize(
    "command",
    [
        ("PING",),
        ("SCRIPT LOAD", "return 'ä'"),
        ("EVALSHA", "0f" * 20, 1, "{ksana}:", b"\x00\xff\r\n", -7, 2**53, 1.5, ""),
        ("SET", "key", bytearray(b"ab")),
        ("SET", "key", memoryview(b"ab")),
        ("SET", "key", b"x" * 100_000),
    ],
)
def test_the_server_is_sent_what_the_driver_would_send(command: tuple[Any, ...]) -> None:
    assert b"".join(packing(Connection)().pack_command(*command)) == b"".join(Connection().pack_command(*command))


def test_what_cannot_be_sent_is_refused_as_the_driver_does() -> None:
    with pytest.raises(DataError, match="NoneType"):
        packing(Connection)().pack_command("SET", "key", None)  # type: ignore[arg-type]
    with pytest.raises(UnicodeEncodeError):
        packing(Connection)().pack_command("SET", "key", "\udc80")


@pytest.mark.parametrize("kind", [Connection, SSLConnection, UnixDomainSocketConnection])
def test_every_way_to_a_server_packs_alike(kind: type[AbstractConnection]) -> None:
    connection = packing(kind)()
    assert isinstance(connection, kind)
    assert connection.pack_command("PING") == [b"*1\r\n$4\r\nPING\r\n"]
