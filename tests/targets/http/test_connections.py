"""Names, addresses and connections: where a request really goes, and how often."""

import asyncio
import contextlib
import socket
import ssl
import subprocess
from datetime import timedelta
from pathlib import Path

import pytest
from aiohttp import web

from ksana.domain.outcomes import Verdict
from ksana.targets.http import HttpTarget, Limits
from tests.kit.sink import Hang, Raw, Reply, Sink
from tests.targets.http.attempts import CLOSED, attempt
from tests.targets.http.conftest import MakeTarget


class Names:
    """A resolver that answers as told and counts what it is asked."""

    def __init__(self, **addresses: list[str]) -> None:
        self.addresses = addresses
        self.asked: list[str] = []
        self.first = asyncio.Event()
        self.gate: asyncio.Event | None = None

    async def __call__(self, host: str) -> list[str]:
        self.asked.append(host)
        self.first.set()
        if self.gate is not None:
            await self.gate.wait()
        if (found := self.addresses.get(host.split(".")[0])) is None:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return found


async def test_a_name_is_called_at_the_address_that_was_checked(make_target: MakeTarget, sink: Sink) -> None:
    names = Names(target=["127.0.0.1"])
    target = make_target(lookup=names)
    for host in ("target.example", "TARGET.example", "target.example."):
        outcome = await target.execute(attempt(), {"url": f"http://{host}:{sink.port}/"})
        assert outcome.verdict is Verdict.SUCCESS, outcome.error
    assert sink.requests[0].header("host") == f"target.example:{sink.port}"
    assert names.asked == ["target.example", "target.example."]


async def test_a_name_that_moves_inwards_after_the_check_gains_nothing(make_target: MakeTarget, sink: Sink) -> None:
    names = Names(rebind=["127.0.0.1"])
    target = make_target(lookup=names, limits=Limits(name_ttl=timedelta()))
    url = f"http://rebind.example:{sink.port}/"
    assert (await target.execute(attempt(), {"url": url})).verdict is Verdict.SUCCESS
    names.addresses["rebind"] = ["169.254.169.254"]
    outcome = await target.execute(attempt(), {"url": url})
    assert outcome.verdict is Verdict.FAIL
    assert "rebind.example is 169.254.169.254, never a target" in outcome.error
    assert sink.count == 1


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "127.1",
        "0x7f000001",
        "2130706433",
        "0177.0.0.1",
        "localhost",
        "0.0.0.0",
        "169.254.169.254",
        "10.0.0.1",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[::127.0.0.1]",
        "[fe80::1]",
        "[64:ff9b::7f00:1]",
    ],
)
async def test_no_spelling_of_an_inner_address_gets_through(make_target: MakeTarget, sink: Sink, host: str) -> None:
    target = make_target(policy=CLOSED)
    outcome = await target.execute(attempt(), {"url": f"http://{host}:{sink.port}/"})
    assert outcome.verdict is Verdict.FAIL
    assert outcome.error.startswith("not called: ")
    assert sink.accepted == 0


async def test_a_refusal_names_the_fix(make_target: MakeTarget) -> None:
    outcome = await make_target(policy=CLOSED).execute(attempt(), {"url": "http://10.0.0.1/"})
    assert "add 10.0.0.1 or its network to executor.allow_net" in outcome.error


async def test_of_several_addresses_only_allowed_ones_are_called(make_target: MakeTarget, sink: Sink) -> None:
    target = make_target(lookup=Names(mixed=["169.254.169.254", "127.0.0.1"]))
    outcome = await target.execute(attempt(), {"url": f"http://mixed.example:{sink.port}/"})
    assert outcome.verdict is Verdict.SUCCESS


async def test_an_address_that_refuses_gives_way_to_the_next(make_target: MakeTarget, sink: Sink) -> None:
    target = make_target(lookup=Names(both=["127.0.0.2", "127.0.0.1"]))
    url = f"http://both.example:{sink.port}/"
    for _ in range(2):
        assert (await target.execute(attempt(), {"url": url})).verdict is Verdict.SUCCESS
    assert [request.connection for request in sink.requests] == [1, 1]


async def test_an_address_that_took_the_request_is_the_only_one(make_target: MakeTarget, sink: Sink) -> None:
    target = make_target(lookup=Names(both=["127.0.0.1", "127.0.0.1"]))
    sink.otherwise(Hang())
    short = attempt(timeout=timedelta(milliseconds=200))
    outcome = await target.execute(short, {"url": f"http://both.example:{sink.port}/"})
    assert outcome.timed_out
    assert sink.count == 1


async def test_a_name_without_address_is_retried(make_target: MakeTarget) -> None:
    target = make_target(lookup=Names(empty=[]))
    for host in ("nowhere.example", "empty.example"):
        outcome = await target.execute(attempt(), {"url": f"http://{host}/"})
        assert outcome.verdict is Verdict.RETRY
        assert outcome.error.startswith(f"name {host} does not resolve")


async def test_the_systems_resolver_is_asked_by_default(target: HttpTarget, sink: Sink) -> None:
    outcome = await target.execute(attempt(), {"url": f"http://localhost:{sink.port}/"})
    assert outcome.verdict is Verdict.SUCCESS
    outcome = await target.execute(attempt(), {"url": "http://nowhere.invalid/"})
    assert outcome.verdict is Verdict.RETRY
    assert "does not resolve" in outcome.error


async def test_a_resolver_that_hangs_costs_the_connect_timeout(make_target: MakeTarget) -> None:
    names = Names(slow=["127.0.0.1"])
    names.gate = asyncio.Event()
    short = attempt(connect_timeout=timedelta(milliseconds=100))
    outcome = await make_target(lookup=names).execute(short, {"url": "http://slow.example/"})
    assert (outcome.verdict, outcome.timed_out) == (Verdict.RETRY, True)
    assert outcome.error == "name slow.example was not resolved within 0.1s"


async def test_a_crowd_looks_a_name_up_once(make_target: MakeTarget, sink: Sink) -> None:
    names = Names(popular=["127.0.0.1"])
    names.gate = asyncio.Event()
    target = make_target(lookup=names)
    url = f"http://popular.example:{sink.port}/"
    calls = [asyncio.create_task(target.execute(attempt(), {"url": url})) for _ in range(20)]
    leaver = asyncio.create_task(target.execute(attempt(), {"url": url}))
    await names.first.wait()
    leaver.cancel()
    names.gate.set()
    assert {outcome.verdict for outcome in await asyncio.gather(*calls)} == {Verdict.SUCCESS}
    assert names.asked == ["popular.example"]


async def test_connections_are_used_again(target: HttpTarget, sink: Sink) -> None:
    for _ in range(5):
        assert (await target.execute(attempt(), {"url": sink.url})).verdict is Verdict.SUCCESS
    assert sink.accepted == 1


async def test_a_connection_that_died_idle_costs_nothing(target: HttpTarget, sink: Sink) -> None:
    sink.otherwise(Reply(200, b"ok", close=True))
    for number in range(1, 21):
        outcome = await target.execute(attempt(), {"url": sink.url, "body": "once"})
        assert outcome.verdict is Verdict.SUCCESS, outcome.error
        assert sink.count == number
        await sink.wait_until(lambda: not sink.open, "the connection to be closed")


async def test_a_request_whose_connection_dies_under_it_is_delivered_once(target: HttpTarget, sink: Sink) -> None:
    gate = asyncio.Event()
    sink.on("/warm", Reply(200))
    assert (await target.execute(attempt(), {"url": f"{sink.url}/warm"})).verdict is Verdict.SUCCESS
    url = sink.on("/x", Reply(200, after=gate))
    call = asyncio.create_task(target.execute(attempt(), {"url": url, "body": "once"}))
    await sink.wait_for(2)
    for connection in list(sink.open):
        connection.abort()
    outcome = await call
    assert outcome.verdict is Verdict.RETRY
    assert len(sink.to("/x")) == 1


async def test_cancelling_an_attempt_closes_its_connection(target: HttpTarget, sink: Sink) -> None:
    call = asyncio.create_task(target.execute(attempt(), {"url": sink.on("/x", Hang())}))
    await sink.wait_for(1)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    await sink.wait_until(lambda: not sink.open, "the connection to be closed")
    assert (await target.execute(attempt(), {"url": f"{sink.url}/y"})).verdict is Verdict.SUCCESS


async def test_an_answer_with_too_much_behind_it_ends_the_connection(target: HttpTarget, sink: Sink) -> None:
    smuggled = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil"
    outcome = await target.execute(attempt(), {"url": sink.on("/x", Raw(smuggled))})
    assert outcome.result == b"ok"
    outcome = await target.execute(attempt(), {"url": sink.on("/y", Reply(200, b"fine"))})
    assert outcome.result == b"fine"


async def test_an_answer_that_overtakes_its_request_ends_the_connection(target: HttpTarget) -> None:
    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n")
        await writer.drain()
        ended.set_result(await reader.read() is not None)
        writer.close()

    ended: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
    async with await asyncio.start_server(refuse, "127.0.0.1", 0, limit=1024) as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
        outcome = await target.execute(attempt(), {"url": url, "body": "x" * 50_000_000})
        assert (outcome.verdict, outcome.code) == (Verdict.FAIL, 413)
        with contextlib.suppress(ConnectionError):
            await ended


async def at_once(target: HttpTarget, sink: Sink, calls: int) -> None:
    """So many calls at the same time, each on a connection of its own."""
    gate, before = asyncio.Event(), sink.count
    sink.on("/crowd", Reply(200, after=gate))
    crowd = [asyncio.create_task(target.execute(attempt(), {"url": f"{sink.url}/crowd"})) for _ in range(calls)]
    await sink.wait_for(before + calls)
    gate.set()
    assert {outcome.verdict for outcome in await asyncio.gather(*crowd)} == {Verdict.SUCCESS}


@pytest.mark.parametrize("limits", [Limits(idle_per_host=2), Limits(max_idle=2)])
async def test_only_so_many_unused_connections_are_kept(make_target: MakeTarget, sink: Sink, limits: Limits) -> None:
    target = make_target(limits=limits)
    await at_once(target, sink, 5)
    await sink.wait_until(lambda: len(sink.open) == 2, "all but two connections to be closed")
    await at_once(target, sink, 3)
    assert sink.accepted == 6


async def test_places_used_longest_ago_give_way(make_target: MakeTarget, sink: Sink) -> None:
    target = make_target(limits=Limits(max_idle=1))
    async with Sink() as other:
        await target.execute(attempt(), {"url": sink.url})
        await target.execute(attempt(), {"url": other.url})
        await sink.wait_until(lambda: not sink.open, "the older connection to be closed")
        await target.execute(attempt(), {"url": other.url})
        assert other.accepted == 1


async def test_unused_connections_are_closed_after_a_while(make_target: MakeTarget, sink: Sink) -> None:
    target = make_target(limits=Limits(idle_timeout=timedelta(milliseconds=30)))
    await at_once(target, sink, 3)
    await sink.wait_until(lambda: not sink.open, "the unused connections to be closed")


async def test_a_server_of_another_make_is_understood(target: HttpTarget) -> None:
    async def echo(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        response.enable_chunked_encoding()
        await response.prepare(request)
        async for piece in request.content.iter_chunked(1000):
            await response.write(piece)
        return response

    app = web.Application(client_max_size=2**24)
    app.router.add_route("*", "/{name}", echo)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    url = f"http://127.0.0.1:{runner.addresses[0][1]}/echo"
    for body in ("", "é" * 10, "x" * 1_000_000):
        outcome = await target.execute(attempt(), {"url": url, "body": body})
        assert (outcome.verdict, outcome.result) == (Verdict.SUCCESS, body.encode())
    await runner.cleanup()


async def test_closing_the_target_closes_every_connection(make_target: MakeTarget, sink: Sink) -> None:
    target = make_target()
    call = asyncio.create_task(target.execute(attempt(), {"url": sink.on("/x", Hang())}))
    await sink.wait_for(1)
    await target.close()
    outcome = await call
    assert outcome.verdict is Verdict.RETRY
    assert "stopping" in outcome.error
    await sink.wait_until(lambda: not sink.open, "the connections to be closed")


async def test_many_configs_share_a_bounded_store_of_plans(make_target: MakeTarget, sink: Sink) -> None:
    target = make_target(limits=Limits(max_plans=2))
    for number in [1, 2, 3, 1, 2, 3]:
        await target.execute(attempt(), {"url": f"{sink.url}/{number}", "json": {"n": number}})
    assert [request.json() for request in sink.requests] == [{"n": n} for n in (1, 2, 3, 1, 2, 3)]


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate for secure.example with its key, trusted by nobody yet."""
    path = tmp_path_factory.mktemp("tls") / "both.pem"
    subprocess.run(
        [
            *[
                "openssl",
                "req",
                "-x509",
                "-newkey",
                "ec",
                "-pkeyopt",
                "ec_paramgen_curve:P-256",
                "-nodes",
                "-days",
                "2",
            ],
            *["-subj", "/CN=secure.example", "-addext", "subjectAltName=DNS:secure.example"],
            *["-addext", "basicConstraints=critical,CA:FALSE"],
            *("-keyout", str(path), "-out", str(path.with_suffix(".crt"))),
        ],
        check=True,
        capture_output=True,
    )
    path.write_text(path.read_text() + path.with_suffix(".crt").read_text())
    return path


@pytest.mark.parametrize("trusted", [True, False])
async def test_tls_is_checked_against_the_name_though_the_address_is_pinned(
    make_target: MakeTarget, certificate: Path, monkeypatch: pytest.MonkeyPatch, trusted: bool
) -> None:
    if trusted:
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate.with_suffix(".crt")))
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate)
    target = make_target(lookup=Names(secure=["127.0.0.1"], other=["127.0.0.1"]))
    async with Sink(tls) as sink:
        outcome = await target.execute(attempt(), {"url": f"https://secure.example:{sink.port}/"})
        assert (outcome.verdict is Verdict.SUCCESS) == trusted, outcome.error
        wrong = await target.execute(attempt(), {"url": f"https://other.example:{sink.port}/"})
        assert wrong.verdict is Verdict.RETRY
        assert wrong.error.startswith(f"TLS with other.example:{sink.port} (127.0.0.1) failed")
        assert sink.count == trusted
