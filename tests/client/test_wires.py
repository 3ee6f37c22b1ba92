"""Both wires over real connections, well and badly answered."""

from __future__ import annotations

import asyncio
import shlex
import ssl
import subprocess
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ksana.client import Unreachable
from ksana.client.blocking import BlockingWire
from ksana.client.calls import Call, Conversation, Repeat
from ksana.client.http1 import place_of
from ksana.client.looping import LoopingWire
from ksana.client.talks import Manners
from ksana.domain.errors import InvalidArgument
from tests.kit.sink import Drop, Hang, Raw, Reply, Sink

Make = Callable[[Call[Any] | Conversation[Any]], Awaitable[Any]]
MANNERS = Manners(headers={"Authorization": "Bearer k"}, retries=2, first_pause=0)


def wire_of(kind: str, url: str, timeout: float = 5, tls: ssl.SSLContext | None = None) -> tuple[Make, Any]:
    """A wire, and how a test has something done by it while the server lives in this very loop."""
    if kind == "looping":
        looping = LoopingWire(place_of(url), MANNERS, timeout, tls)
        return looping.make, looping.close
    blocking = BlockingWire(place_of(url), MANNERS, timeout, tls)

    async def make(described: Any) -> Any:
        return await asyncio.to_thread(blocking.make, described)

    async def close() -> None:
        blocking.close()

    return make, close


def call(path: str, repeat: Repeat = Repeat.ALWAYS) -> Call[Any]:
    return Call(method="POST", path=path, decode=msgspec.json.decode, body=b'{"a":1}', repeat=repeat)


kinds = pytest.mark.parametrize("kind", ["blocking", "looping"])


@kinds
async def test_an_exchange_goes_there_and_back_on_a_connection_that_serves_again(kind: str, sink: Sink) -> None:
    sink.on("/base/x", Reply(body=b'{"ok": true}'))
    make, close = wire_of(kind, f"{sink.url}/base/")
    assert [await make(call("/x")) for _ in range(3)] == [{"ok": True}] * 3
    first = sink.requests[0]
    assert (first.method, first.json(), first.header("Authorization")) == ("POST", {"a": 1}, "Bearer k")
    assert first.header("Content-Type") == "application/json"
    assert first.header("Host") == sink.url.removeprefix("http://")
    assert {request.connection for request in sink.requests} == {1}
    await make(call("/x", Repeat.IF_NOT_DONE))
    assert sink.requests[-1].connection == 2
    await close()


@kinds
async def test_what_breaks_is_tried_again_on_another_connection_or_said(kind: str, sink: Sink) -> None:
    sink.on("/once", Drop(), Reply(body=b"1", close=True), Reply(body=b"2"))
    make, close = wire_of(kind, sink.url)
    assert [await make(call("/once")), await make(call("/once"))] == [1, 2]
    for path, answer in (("/drop", Drop()), ("/raw", Raw())):
        sink.on(path, answer)
        with pytest.raises(Unreachable) as broken:
            await make(call(path, Repeat.IF_NOT_DONE))
        assert broken.value.maybe_done
        assert len(sink.to(path)) == 1
        with pytest.raises(Unreachable):
            await make(call(path))
        assert len(sink.to(path)) == 4
    await close()


@kinds
async def test_a_server_that_is_away_or_silent_is_not_waited_for_without_end(kind: str, sink: Sink) -> None:
    sink.on("/hang", Hang())
    make, close = wire_of(kind, sink.url, timeout=0.05)
    with pytest.raises(Unreachable, match=r"within 0\.05s"):
        await make(call("/hang", Repeat.IF_NOT_DONE))
    await close()
    make, close = wire_of(kind, "http://127.0.0.1:1")
    with pytest.raises(Unreachable, match="no connection") as refused:
        await make(call("/x", Repeat.IF_NOT_DONE))
    assert not refused.value.maybe_done
    await close()


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """A certificate of this machine, and its key."""
    path = tmp_path / "server.pem"
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=here"
    more = ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(path), "-out", str(path.with_suffix(".crt"))]
    subprocess.run([*shlex.split(command), *more], check=True, capture_output=True)
    path.write_text(path.read_text() + path.with_suffix(".crt").read_text())
    return path


@kinds
async def test_tls_is_checked(kind: str, certificate: Path) -> None:
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate)
    async with Sink(tls) as sink:
        sink.on("/x", Reply(body=b"1"))
        trusting = ssl.create_default_context(cafile=str(certificate.with_suffix(".crt")))
        make, close = wire_of(kind, sink.url, tls=trusting)
        assert [await make(call("/x")), await make(call("/x"))] == [1, 1]
        await close()
        make, close = wire_of(kind, sink.url)
        with pytest.raises(Unreachable, match="CERTIFICATE_VERIFY_FAILED") as refused:
            await make(call("/x", Repeat.IF_NOT_DONE))
        assert not refused.value.maybe_done
        await close()


@pytest.mark.parametrize("url", ["", "ftp://h", "http://", "http://h?x=1", "http://u:p@h", "http://h:port"])
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(InvalidArgument):
        place_of(url)
