"""What becomes of an attempt, by what the target answers."""

import asyncio
import contextlib
import socket
from datetime import timedelta

import pytest

from ksana.domain.outcomes import Verdict
from ksana.targets.http import HttpTarget, Limits
from ksana.targets.http.answers import retry_after, verdict_of
from tests.kit.sink import Drip, Drop, Flood, Hang, Raw, Reply, Sink
from tests.targets.http.attempts import NOW, attempt, exchange_of
from tests.targets.http.conftest import MakeTarget

SHORT = timedelta(milliseconds=200)


@pytest.mark.parametrize(
    ("status", "verdict"),
    [
        (200, Verdict.SUCCESS),
        (202, Verdict.SUCCESS),
        (204, Verdict.SUCCESS),
        (299, Verdict.SUCCESS),
        (300, Verdict.FAIL),
        (304, Verdict.FAIL),
        (400, Verdict.FAIL),
        (401, Verdict.FAIL),
        (404, Verdict.FAIL),
        (408, Verdict.RETRY),
        (409, Verdict.FAIL),
        (425, Verdict.FAIL),
        (429, Verdict.RETRY),
        (500, Verdict.RETRY),
        (501, Verdict.RETRY),
        (503, Verdict.RETRY),
        (599, Verdict.RETRY),
        (600, Verdict.FAIL),
        (999, Verdict.FAIL),
    ],
)
async def test_the_status_decides(target: HttpTarget, sink: Sink, status: int, verdict: Verdict) -> None:
    outcome = await target.execute(attempt(), {"url": sink.on("/x", Reply(status))})
    assert (outcome.verdict, outcome.code) == (verdict, status)
    assert (outcome.error == "") == (verdict is Verdict.SUCCESS)
    assert sink.count == 1


def test_a_good_answer_to_an_async_call_means_to_wait() -> None:
    assert verdict_of(202, True) is Verdict.WAIT
    assert verdict_of(200, True) is Verdict.WAIT
    assert verdict_of(503, True) is Verdict.RETRY
    assert verdict_of(404, True) is Verdict.FAIL


async def test_a_bad_answer_is_told_in_a_sentence(target: HttpTarget, sink: Sink) -> None:
    url = sink.on("/x", Reply(503, b"  over\n  loaded " + b"x" * 500))
    outcome = await target.execute(attempt(), {"url": url, "method": "PUT"})
    assert outcome.error == f"503 Service Unavailable from PUT {url}: over loaded " + "x" * 188
    outcome = await target.execute(attempt(), {"url": sink.on("/y", Reply(418))})
    assert outcome.error == f"418 I'm a Teapot from POST {sink.url}/y"
    outcome = await target.execute(attempt(), {"url": sink.on("/z", Reply(777, b"\xff\xfe"))})
    assert outcome.error == f"777 from POST {sink.url}/z: ��"


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("120", timedelta(seconds=120)),
        (" 0 ", timedelta()),
        ("Sun, 01 Mar 2026 08:01:02 GMT", timedelta(seconds=59, milliseconds=500)),
        ("Sun, 01 Mar 2026 08:01:02", timedelta(seconds=59, milliseconds=500)),
        ("Sun, 01 Mar 2020 08:01:02 GMT", timedelta()),
        ("9" * 5000, timedelta(days=365)),
        ("-5", None),
        ("1.5", None),
        ("٣", None),
        ("soon", None),
        ("Sun, 99 Mar 2026 08:01:02 GMT", None),
        ("", None),
    ],
)
def test_retry_after_is_seconds_or_a_date(text: str, span: timedelta | None) -> None:
    assert retry_after({"retry-after": text}, NOW) == span


@pytest.mark.parametrize(
    ("status", "span"), [(429, timedelta(seconds=7)), (503, timedelta(seconds=7)), (404, None), (200, None)]
)
async def test_a_wish_to_wait_counts_where_there_is_a_retry(
    target: HttpTarget, sink: Sink, status: int, span: timedelta | None
) -> None:
    url = sink.on("/x", Reply(status, b"", {"Retry-After": "7"}))
    assert (await target.execute(attempt(), {"url": url})).retry_after == span


def closed_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


async def test_a_refused_connection_is_retried(target: HttpTarget) -> None:
    port = closed_port()
    outcome = await target.execute(attempt(), {"url": f"http://127.0.0.1:{port}/"})
    assert outcome.verdict is Verdict.RETRY
    assert outcome.error == f"connection refused by 127.0.0.1:{port}"
    assert not outcome.timed_out
    assert exchange_of(outcome).request_line == f"POST http://127.0.0.1:{port}/"


async def test_a_connection_that_does_not_come_about_is_a_timeout(target: HttpTarget) -> None:
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))
        deaf.listen(0)
        port = deaf.getsockname()[1]
        waiting = [socket.socket() for _ in range(3)]
        for one in waiting:
            one.setblocking(False)
            one.connect_ex(("127.0.0.1", port))
        outcome = await target.execute(attempt(connect_timeout=SHORT), {"url": f"http://127.0.0.1:{port}/"})
        for one in waiting:
            one.close()
    assert (outcome.verdict, outcome.timed_out) == (Verdict.RETRY, True)
    assert outcome.error == f"no connection to 127.0.0.1:{port} within 0.2s"


async def test_a_target_that_hangs_costs_its_timeout(target: HttpTarget, sink: Sink) -> None:
    outcome = await target.execute(attempt(timeout=SHORT), {"url": sink.on("/x", Hang())})
    assert (outcome.verdict, outcome.timed_out) == (Verdict.RETRY, True)
    assert outcome.error == "no answer within 0.2s"
    await sink.wait_until(lambda: not sink.open, "the connection to be closed")


@pytest.mark.parametrize("pieces", [[b"drop"], [b"x" * 100_000]])
async def test_a_target_that_drips_costs_its_timeout(target: HttpTarget, sink: Sink, pieces: list[bytes]) -> None:
    outcome = await target.execute(attempt(timeout=SHORT), {"url": sink.on("/x", Drip(pieces))})
    assert (outcome.verdict, outcome.timed_out) == (Verdict.RETRY, True)
    assert outcome.error == "no complete answer within 0.2s"
    await sink.wait_until(lambda: not sink.open, "the connection to be closed")


async def test_of_a_flood_only_so_much_is_kept(make_target: MakeTarget, sink: Sink) -> None:
    target = make_target(limits=Limits(max_response_bytes=200_000))
    outcome = await target.execute(attempt(), {"url": sink.on("/x", Flood())})
    exchange = exchange_of(outcome)
    assert (outcome.verdict, outcome.code, outcome.result) == (Verdict.SUCCESS, 200, None)
    assert exchange.response_body == b"x" * 200_000
    assert exchange.truncated
    await sink.wait_until(lambda: not sink.open, "the connection to be closed")


@pytest.mark.parametrize("most", [0, 5, 65_535, 65_536, 65_537, 131_072])
async def test_an_answer_of_just_the_limit_is_whole(make_target: MakeTarget, sink: Sink, most: int) -> None:
    target = make_target(limits=Limits(max_response_bytes=most))
    for size in (most, most + 1):
        url = sink.on("/x", Reply(200, b"y" * size))
        exchange = exchange_of(await target.execute(attempt(), {"url": url}))
        assert len(exchange.response_body) == most
        assert exchange.truncated == (size > most)


async def test_an_announced_length_is_not_believed(target: HttpTarget, sink: Sink) -> None:
    raw = b"HTTP/1.1 200 OK\r\nContent-Length: 9999999999999999\r\n\r\nabc"
    outcome = await target.execute(attempt(), {"url": sink.on("/x", Raw(raw))})
    assert outcome.verdict is Verdict.RETRY
    assert outcome.error.startswith(f"the answer of 127.0.0.1:{sink.port} broke off")


@pytest.mark.parametrize(
    "raw",
    [
        b"\x00\xffthis is no HTTP\r\n\r\n",
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"HTTP/1.1 banana\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"X-A: b\r\n" * 40_000 + b"\r\n",
        b"HTTP/1.1 200 OK\r\nX-A: " + b"b" * 2_000_000,
    ],
)
async def test_garbage_is_a_failure_like_any_other(target: HttpTarget, sink: Sink, raw: bytes) -> None:
    outcome = await target.execute(attempt(), {"url": sink.on("/x", Raw(raw))})
    assert (outcome.verdict, outcome.timed_out) == (Verdict.RETRY, False)
    assert f"127.0.0.1:{sink.port}" in outcome.error


@pytest.mark.parametrize("drop", [Drop(), Drop(abort=True)])
async def test_a_connection_closed_without_an_answer_is_retried(target: HttpTarget, sink: Sink, drop: Drop) -> None:
    outcome = await target.execute(attempt(), {"url": sink.on("/x", drop)})
    assert outcome.verdict is Verdict.RETRY
    assert outcome.error.startswith(f"127.0.0.1:{sink.port} broke the connection")
    assert sink.count == 1


async def test_plain_http_on_a_tls_port_says_so(target: HttpTarget, sink: Sink) -> None:
    outcome = await target.execute(attempt(), {"url": sink.url.replace("http:", "https:")})
    assert outcome.verdict is Verdict.RETRY
    assert outcome.error.startswith(f"TLS with 127.0.0.1:{sink.port} failed")


async def test_headers_are_read_whatever_their_encoding(target: HttpTarget, sink: Sink) -> None:
    raw = b"HTTP/1.1 200 OK\r\nX-Old: \xff\xe9\r\nX-New: \xc3\xa9\r\nX-Two: 1\r\nx-two: 2\r\nContent-Length: 0\r\n\r\n"
    outcome = await target.execute(attempt(), {"url": sink.on("/x", Raw(raw))})
    assert outcome.verdict is Verdict.SUCCESS
    headers = exchange_of(outcome).response_headers
    assert (headers["x-old"], headers["x-new"], headers["x-two"]) == ("ÿé", "é", "1, 2")


@pytest.mark.parametrize(
    ("raw", "body"),
    [
        (b"HTTP/1.1 200 OK\r\n\r\nuntil the end", b"until the end"),
        (b"HTTP/1.0 200 OK\r\n\r\n", b""),
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n1\r\nd\r\n0\r\nX-T: 1\r\n\r\n",
            b"abcd",
        ),
        (
            b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nLink: a\r\n\r\n"
            b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx",
            b"x",
        ),
        (b"HTTP/1.1 204 No Content\r\n\r\n", b""),
    ],
)
async def test_every_way_to_end_a_body_is_understood(target: HttpTarget, sink: Sink, raw: bytes, body: bytes) -> None:
    outcome = await target.execute(attempt(), {"url": sink.on("/x", Raw(raw))})
    assert (outcome.verdict, outcome.result) == (Verdict.SUCCESS, body)
    assert "link" not in exchange_of(outcome).response_headers


async def test_an_answer_to_head_has_no_body_whatever_it_announces(target: HttpTarget, sink: Sink) -> None:
    url = sink.on("/x", Reply(200, b"", {"Content-Length": "500"}))
    for _ in range(2):
        outcome = await target.execute(attempt(), {"url": url, "method": "HEAD"})
        assert (outcome.verdict, outcome.result) == (Verdict.SUCCESS, b"")
    assert sink.accepted == 1


async def test_what_came_of_an_answer_before_the_time_was_up_is_kept(target: HttpTarget, sink: Sink) -> None:
    outcome = await target.execute(attempt(timeout=SHORT), {"url": sink.on("/x", Drip([b"half"], status=500))})
    exchange = exchange_of(outcome)
    assert (outcome.code, exchange.response_code, exchange.response_body) == (500, 500, b"half")


@pytest.mark.parametrize("endless", [b"X-A: b\r\n", b"b" * 1000])
@pytest.mark.parametrize(
    "start", [b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX-T: "]
)
async def test_headers_without_end_are_cut_off(target: HttpTarget, start: bytes, endless: bytes) -> None:
    async def babble(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(start + b"X-A: ")
        with contextlib.suppress(ConnectionError):
            while True:
                writer.write(endless * 10)
                await writer.drain()
        writer.close()
        ended.set()

    ended = asyncio.Event()
    async with await asyncio.start_server(babble, "127.0.0.1", 0) as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
        outcome = await target.execute(attempt(), {"url": url})
        await ended.wait()
    assert outcome.verdict is Verdict.RETRY
    assert "headers without end" in outcome.error


async def test_a_switch_of_protocols_is_no_answer_to_a_job(target: HttpTarget, sink: Sink) -> None:
    raw = b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n"
    outcome = await target.execute(attempt(), {"url": sink.on("/x", Raw(raw))})
    assert (outcome.verdict, outcome.code) == (Verdict.FAIL, 101)
