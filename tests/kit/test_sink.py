import asyncio

import aiohttp
import pytest

from tests.kit.sink import Drip, Drop, Flood, Hang, Raw, Reply, Sink


async def ask(url: str, body: bytes = b"") -> tuple[int, bytes]:
    async with aiohttp.ClientSession() as session, session.post(url, data=body) as response:
        return response.status, await response.read()


async def test_a_request_is_recorded_as_it_came(sink: Sink) -> None:
    async with aiohttp.ClientSession() as session:
        await session.put(f"{sink.url}/a%20b?c=1", data=b'{"n":1}', headers={"X-Two": "2"})
    (request,) = await sink.wait_for(1)
    assert (request.method, request.path, request.query) == ("PUT", "/a b", "c=1")
    assert request.header("x-two") == "2"
    assert request.json() == {"n": 1}


async def test_answers_come_in_sequence_and_the_last_stays(sink: Sink) -> None:
    url = sink.on("/flaky", Reply(503), Reply(200, b"done"))
    assert [await ask(url) for _ in range(3)] == [(503, b""), (200, b"done"), (200, b"done")]
    assert (await ask(f"{sink.url}/other"))[0] == 200
    assert len(sink.to("/flaky")) == 3


async def test_an_answer_can_depend_on_the_request(sink: Sink) -> None:
    url = sink.on("/echo", lambda request: Reply(202, request.body))
    assert await ask(url, b"hello") == (202, b"hello")


async def test_an_answer_waits_for_its_event(sink: Sink) -> None:
    gate = asyncio.Event()
    asking = asyncio.create_task(ask(sink.on("/slow", Reply(after=gate))))
    await sink.wait_for(1)
    assert not asking.done()
    gate.set()
    assert (await asking)[0] == 200


async def test_a_kept_alive_connection_is_counted_once_and_a_closed_one_twice(sink: Sink) -> None:
    kept, closed = sink.on("/kept", Reply()), sink.on("/closed", Reply(close=True))
    async with aiohttp.ClientSession() as session:
        for url in (kept, closed):
            async with session.get(url) as response:
                await response.read()
        await sink.wait_until(lambda: not sink.open, "the sink's close")
        async with session.get(kept) as response:
            await response.read()
    assert [request.connection for request in sink.requests] == [1, 1, 2]


@pytest.mark.parametrize("behaviour", [Drop(), Drop(abort=True), Raw()])
async def test_a_broken_answer_is_an_error_to_the_caller(sink: Sink, behaviour: Drop | Raw) -> None:
    with pytest.raises(aiohttp.ClientError):
        await ask(sink.on("/broken", behaviour))


@pytest.mark.parametrize("behaviour", [Hang(), Drip([b"a", b"b"])])
async def test_an_endless_answer_ends_when_the_caller_leaves(sink: Sink, behaviour: Hang | Drip) -> None:
    asking = asyncio.create_task(ask(sink.on("/endless", behaviour)))
    await sink.wait_for(1)
    asking.cancel()
    await sink.wait_until(lambda: not sink.open, "the caller's hanging up")


async def test_a_drip_comes_piece_by_piece(sink: Sink) -> None:
    tap = asyncio.Event()
    url = sink.on("/drip", Drip([b"a", b"b"], tap))
    async with aiohttp.ClientSession() as session, session.get(url) as response:
        for piece in (b"a", b"b"):
            tap.set()
            assert await response.content.readany() == piece


async def test_a_flood_goes_on_for_as_long_as_it_is_read(sink: Sink) -> None:
    async with aiohttp.ClientSession() as session, session.get(sink.on("/flood", Flood())) as response:
        assert len(await response.content.readexactly(1_000_000)) == 1_000_000
        response.close()


async def test_waiting_in_vain_says_what_had_come(sink: Sink) -> None:
    await ask(f"{sink.url}/only")
    with pytest.raises(AssertionError, match="POST /only"):
        await sink.wait_for(2, timeout=0)
