"""A store that is closed, absent, damaged or away says so, and works again when it is back."""

import asyncio
import os
import socket
import stat
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import pytest

from ksana.domain.errors import StoreUnavailable
from ksana.domain.ports import Store
from ksana.domain.queries import JobQuery
from ksana.stores.open import open_store
from tests.stores.builders import LEASE, NOW, a_job
from tests.stores.conftest import MakeStore

SERVERS = ("postgres", "mysql", "redis")


async def test_a_closed_store_is_unavailable_and_can_be_opened_again(make_store: MakeStore) -> None:
    store = make_store()
    with pytest.raises(StoreUnavailable):
        await store.ping()
    await store.open()
    await store.add_jobs([a_job(1)])
    await store.close()
    for attempt in (store.ping(), store.find_jobs(JobQuery()), store.join("node", NOW, LEASE), store.turn([])):
        with pytest.raises(StoreUnavailable):
            await attempt
    await store.open()
    assert await store.get_jobs([1]) == [a_job(1)]
    await store.close()


async def test_closing_twice_does_no_harm(make_store: MakeStore) -> None:
    store = make_store()
    await store.open()
    await store.close()
    await store.close()


async def test_what_is_under_way_when_a_store_closes_is_done_or_refused(make_store: MakeStore) -> None:
    store = make_store()
    await store.open()
    steps = [asyncio.ensure_future(store.reserve_ids("run", 1)) for _ in range(20)]
    await asyncio.sleep(0)
    await store.close()
    answers = await asyncio.wait_for(asyncio.gather(*steps, return_exceptions=True), 30)
    assert [answer for answer in answers if not isinstance(answer, range | StoreUnavailable)] == []


class Gate:
    """A way to a server that can be shut and opened: bytes pass while it is open."""

    def __init__(self, host: str, port: int) -> None:
        self._server_at = (host, port)
        self._passing: set[asyncio.StreamWriter] = set()
        self._listener: asyncio.Server | None = None
        with closing(socket.create_server(("127.0.0.1", 0))) as probe:
            self.port: int = probe.getsockname()[1]

    async def open(self) -> None:
        self._listener = await asyncio.start_server(self._pass, "127.0.0.1", self.port)

    async def shut(self) -> None:
        assert self._listener is not None
        self._listener.close()
        for writer in self._passing:
            writer.transport.abort()
        self._passing.clear()
        await self._listener.wait_closed()

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection(*self._server_at)
        self._passing |= {writer, far_writer}
        await asyncio.gather(_copy(reader, far_writer), _copy(far_reader, writer))


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    except ConnectionError:
        pass
    writer.close()


@pytest.fixture(params=SERVERS)
def server_url(request: pytest.FixtureRequest) -> Iterator[str]:
    if request.param == "redis":
        yield request.getfixturevalue("fresh_redis_database")()
        return
    request.getfixturevalue(f"{request.param}_stores")
    # The stores' own database, so that the schema is there.
    shared = request.getfixturevalue(f"{request.param}_shared")
    yield shared._url


def gate_to(url: str) -> tuple[Gate, str]:
    """A gate before a server, and the address by which one goes through it."""
    parts = urlsplit(url)
    gate = Gate(parts.hostname or "127.0.0.1", parts.port or 0)
    login = f"{parts.username}@" if parts.username else ""
    return gate, urlunsplit(parts._replace(netloc=f"{login}127.0.0.1:{gate.port}"))


async def test_an_outage_is_reported_and_survived(server_url: str) -> None:
    gate, url = gate_to(server_url)
    store: Store = open_store(url)
    with pytest.raises(StoreUnavailable):
        await store.open()
    await gate.open()
    await store.open()
    await store.add_jobs([a_job(1)])
    for _ in range(2):
        await gate.shut()
        with pytest.raises(StoreUnavailable):
            await store.ping()
        with pytest.raises(StoreUnavailable):
            await store.reserve_ids("run", 1)
        await gate.open()
        await store.ping()
        assert len(await store.reserve_ids("run", 1)) == 1
    assert await store.get_jobs([1]) == [a_job(1)]
    await store.close()
    await gate.shut()


async def test_connections_that_died_at_rest_are_not_noticed_by_the_caller(server_url: str) -> None:
    gate, url = gate_to(server_url)
    await gate.open()
    store = open_store(url)
    await store.open()
    await asyncio.gather(*(store.reserve_ids("run", 1) for _ in range(6)))
    await gate.shut()
    await gate.open()
    assert len(await store.reserve_ids("run", 1)) == 1
    await store.ping()
    await store.close()
    await gate.shut()


async def test_connections_are_replaced_when_their_time_is_over(server_url: str) -> None:
    store = open_store(server_url, pool_lifetime=1e-9)
    await store.open()
    for _ in range(3):
        assert len(await store.reserve_ids("run", 1)) == 1
    await store.close()


async def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "ksana.db"
    path.write_bytes(b"this is no database, whatever its name says" * 100)
    with pytest.raises(StoreUnavailable, match=r"ksana\.db"):
        await open_store(f"sqlite:///{path}").open()


async def test_a_file_store_makes_its_directory(tmp_path: Path) -> None:
    store = open_store(f"sqlite:///{tmp_path}/a/b/ksana.db")
    await store.open()
    await store.ping()
    await store.close()


async def test_a_file_where_the_directory_should_be_is_told_as_such(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("not a directory")
    with pytest.raises(StoreUnavailable, match=r"data/ksana\.db cannot be opened"):
        await open_store(f"sqlite:///{tmp_path}/data/ksana.db").open()


def files_in(directory: Path) -> list[Path]:
    return list(directory.iterdir())


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.skipif(os.name != "posix", reason="modes are POSIX")
async def test_nobody_else_on_the_machine_can_read_the_file(tmp_path: Path) -> None:
    store = open_store(f"sqlite:///{tmp_path}/ksana.db")
    await store.open()
    try:
        assert {mode_of(path) for path in files_in(tmp_path)} == {0o600}
    finally:
        await store.close()
