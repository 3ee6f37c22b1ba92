import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.services.install import install
from tests.services.loop import LoopThread
from tests.services.names import RunName
from tests.services.private import start_private
from tests.services.provide import Found, Servers
from tests.services.redis import Redis
from tests.services.service import AdmissionError, Recipe

NOW = datetime(2030, 1, 1, tzinfo=UTC)
VARIABLE = "KSANA_TEST_IMAGINARY"


class Imaginary:
    """A kind of server of which one runs at `usual` and none can be started."""

    store = "imaginary"
    variable = VARIABLE
    package = "imaginary-server"

    def __init__(self, usual: str | None = None) -> None:
        self._usual = usual

    def usual_urls(self) -> list[str]:
        return ["imaginary://nobody", "imaginary://usual"]

    async def admit(self, url: str) -> None:
        if url != self._usual:
            raise AdmissionError(f"{url}: nobody is there")

    def recipe(self, directory: Path, port: int) -> Recipe | None:
        return None

    async def leftovers(self, url: str, *, in_use_too: bool) -> list[str]:
        return []

    async def drop(self, url: str, names: list[str]) -> None: ...


@pytest.fixture(autouse=True)
def nothing_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KSANA_TEST_INSTALL", "0")
    monkeypatch.delenv("KSANA_TEST_NO_LOOPBACK", raising=False)


@pytest.fixture
def said() -> list[str]:
    return []


def opened(service: Imaginary, loop: LoopThread) -> Found:
    servers = Servers(RunName.of_this_process(NOW), loop, lambda text: None, (service,))
    servers.open(NOW)
    servers.close()
    return servers.found[service.store]


def test_a_server_at_the_usual_place_is_used(service_loop: LoopThread) -> None:
    assert opened(Imaginary("imaginary://usual"), service_loop).url == "imaginary://usual"


def test_a_server_at_the_usual_place_can_be_passed_over(
    service_loop: LoopThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KSANA_TEST_NO_LOOPBACK", "1")
    assert opened(Imaginary("imaginary://usual"), service_loop).url is None


def test_a_private_server_may_be_preferred_to_one_at_the_usual_place(service_loop: LoopThread) -> None:
    private = Found("imaginary://private", "started for this run")
    for prefers_private in (True, False):
        service = Imaginary("imaginary://usual")
        run = RunName.of_this_process(NOW)
        servers = Servers(run, service_loop, lambda text: None, (service,), prefers_private=prefers_private)
        servers._private_server = lambda service: private  # type: ignore[method-assign]
        servers.open(NOW)
        assert (servers.found[service.store] == private) is prefers_private


def test_a_server_named_by_the_environment_comes_first(
    service_loop: LoopThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, "imaginary://named")
    assert opened(Imaginary("imaginary://named"), service_loop) == Found("imaginary://named", VARIABLE)


def test_a_named_server_that_does_not_answer_is_an_error(
    service_loop: LoopThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, "imaginary://named")
    with pytest.raises(AdmissionError, match="imaginary://named"):
        opened(Imaginary("imaginary://usual"), service_loop)


def test_a_store_can_be_switched_off(service_loop: LoopThread, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "off")
    assert opened(Imaginary("imaginary://usual"), service_loop) == Found(None, f"{VARIABLE}=off")


def test_a_store_without_any_server_says_why(service_loop: LoopThread) -> None:
    found = opened(Imaginary(), service_loop)
    assert found.url is None
    assert "none is installed; KSANA_TEST_INSTALL=0 forbids installing it" in found.how


@pytest.fixture
def apt_get(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An apt-get that only writes down what it was asked, and the only program there is."""
    program = tmp_path / "apt-get"
    program.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/asked\necho no network\n[ "$1" != "$BROKEN" ]\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    yield tmp_path / "asked"


def test_installing_is_said_aloud(apt_get: Path, said: list[str]) -> None:
    assert install(["redis-server", "postgresql"], said.append) is None
    update, packages = apt_get.read_text().splitlines()
    assert update.startswith("update")
    assert packages.endswith("redis-server postgresql")
    assert said[0].startswith("INSTALLING redis-server postgresql with apt-get")


def test_a_failed_installation_gives_its_last_words(
    apt_get: Path, said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BROKEN", "update")
    assert install(["redis-server"], said.append) == "`apt-get update` failed: no network"


def test_a_private_server_answers_until_it_is_stopped(service_loop: LoopThread) -> None:
    service = Redis()

    def admit(url: str) -> None:
        service_loop.run(service.admit(url))

    server = start_private(service, f"{RunName.of_this_process(NOW)}_{os.getpid()}", admit)
    if server is None:
        pytest.skip("no redis-server is installed")
    admit(server.url)
    server.stop()
    with pytest.raises(AdmissionError):
        admit(server.url)
