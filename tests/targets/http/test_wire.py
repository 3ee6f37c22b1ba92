"""A connection by itself, on both kinds of loop."""

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest

from ksana.targets.http.deadlines import Deadlines
from ksana.targets.http.known_heads import KnownHeads
from ksana.targets.http.post import Post
from ksana.targets.http.wire import BrokenError, Connection, GarbledError, LateError, StoppedError, UnsentError

REQUEST = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
DEADLINE = 10


class Peer:
    """The other end of one connection: what it has read, and a pen to write with."""

    def __init__(self) -> None:
        self.met: asyncio.Future[tuple[asyncio.StreamReader, asyncio.StreamWriter]]
        self.met = asyncio.get_running_loop().create_future()

    async def hears(self) -> bytes:
        reader, _ = await self.met
        async with asyncio.timeout(DEADLINE):
            return await reader.readuntil(b"\r\n\r\n")

    async def hears_the_end(self) -> bool:
        reader, _ = await self.met
        async with asyncio.timeout(DEADLINE):
            try:
                return await reader.read() == b""
            except ConnectionResetError:
                return True

    async def says(self, data: bytes) -> None:
        _, writer = await self.met
        writer.write(data)
        await writer.drain()

    async def leaves(self) -> None:
        _, writer = await self.met
        writer.close()
        await writer.wait_closed()


@pytest.fixture
async def peer() -> AsyncIterator[Peer]:
    yield Peer()


@pytest.fixture
async def connection(peer: Peer) -> AsyncIterator[Connection]:
    def meet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peer.met.set_result((reader, writer))

    async with await asyncio.start_server(meet, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        loop = asyncio.get_running_loop()
        _, connection = await loop.create_connection(
            lambda: Connection(Deadlines(), KnownHeads(), Post()), "127.0.0.1", port
        )
        await peer.met
        yield connection
        connection.abort()
        await peer.leaves()


def ask(connection: Connection, seconds: float = DEADLINE, most: int = 1000) -> "asyncio.Task[object]":
    deadline = asyncio.get_running_loop().time() + seconds
    return asyncio.create_task(connection.exchange(REQUEST, is_head=False, most=most, deadline=deadline))


async def test_exchanges_follow_each_other(connection: Connection, peer: Peer) -> None:
    for _ in range(3):
        asking = ask(connection)
        assert await peer.hears() == REQUEST
        await peer.says(OK[:25])
        await peer.says(OK[25:])
        await asking
        assert connection.is_reusable


async def test_cancelling_an_exchange_closes_the_connection(connection: Connection, peer: Peer) -> None:
    asking = ask(connection)
    await peer.hears()
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert not connection.is_reusable
    assert await peer.hears_the_end()


async def test_time_that_is_up_closes_the_connection(connection: Connection, peer: Peer) -> None:
    asking = ask(connection, seconds=0.05)
    await peer.hears()
    with pytest.raises(LateError):
        await asking
    assert await peer.hears_the_end()


async def test_stopping_ends_the_exchange(connection: Connection, peer: Peer) -> None:
    asking = ask(connection)
    await peer.hears()
    connection.abort()
    with pytest.raises(StoppedError):
        await asking
    assert await peer.hears_the_end()


async def test_a_peer_that_leaves_breaks_the_exchange(connection: Connection, peer: Peer) -> None:
    asking = ask(connection)
    await peer.hears()
    await peer.says(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf")
    await peer.leaves()
    with pytest.raises(BrokenError) as caught:
        await asking
    assert caught.value.partial is not None
    assert caught.value.partial.body == b"half"


async def test_garbage_closes_the_connection(connection: Connection, peer: Peer) -> None:
    asking = ask(connection)
    await peer.hears()
    await peer.says(b"\x16\x03\x01 hello\r\n\r\n")
    with pytest.raises(GarbledError):
        await asking
    assert await peer.hears_the_end()


async def test_more_than_wanted_is_not_read(connection: Connection, peer: Peer) -> None:
    asking = ask(connection, most=1)
    await peer.hears()
    await peer.says(OK)
    await asking
    assert not connection.is_reusable
    assert await peer.hears_the_end()


@pytest.mark.parametrize("last_words", [b"", b"HTTP/1.1 408 Request Timeout\r\n\r\n"])
async def test_the_end_of_an_idle_connection_is_noticed_before_the_loop_hears_of_it(
    connection: Connection, peer: Peer, last_words: bytes
) -> None:
    asking = ask(connection)
    await peer.hears()
    await peer.says(OK)
    await asking
    await peer.says(last_words)
    await peer.leaves()
    with pytest.raises(UnsentError):
        await ask(connection)
    assert not connection.is_reusable


async def test_a_connection_that_is_lost_takes_no_request(connection: Connection, peer: Peer) -> None:
    await peer.leaves()
    await until(lambda: connection.is_lost)
    with pytest.raises(BrokenError):
        await ask(connection)


async def until(is_so: Callable[[], bool]) -> None:
    """Give the loop its turns until something is so."""
    async with asyncio.timeout(DEADLINE):
        while not is_so():  # noqa: ASYNC110 - what is waited for has no event
            await asyncio.sleep(0)
