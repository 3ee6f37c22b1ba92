"""Finds a server for every store: named by the environment, else on loopback or private, whichever is preferred, else
installed.

It runs once per test run, in the process that controls the others, and undoes what it did at the end.
"""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime

import msgspec

from tests.services.install import install, why_not_installing
from tests.services.loop import LoopThread
from tests.services.mysql import MySql
from tests.services.names import RunName
from tests.services.postgres import Postgres
from tests.services.private import PrivateServer, start_private
from tests.services.redis import Redis
from tests.services.service import AdmissionError, Service

SERVICES: tuple[Service, ...] = (Postgres(), MySql(), Redis())
OFF = "off"


class Found(msgspec.Struct, frozen=True):
    """Where a store's tests run: a URL and how it came about, or no URL and the reason."""

    url: str | None
    how: str


class Servers:
    """The servers of one test run."""

    def __init__(
        self,
        run: RunName,
        loop: LoopThread,
        say: Callable[[str], None],
        services: tuple[Service, ...] = SERVICES,
        *,
        prefers_private: bool = False,
    ) -> None:
        self.run = run
        self.found: dict[str, Found] = {}
        self._loop = loop
        self._say = say
        self._services = services
        self._prefers_private = prefers_private
        self._private: list[PrivateServer] = []

    def open(self, now: datetime) -> None:
        for service in self._services:
            self.found[service.store] = self._named(service)
        ways = [self._start_private, self._look_at_the_usual_places]
        for way in ways if self._prefers_private else reversed(ways):
            way()
        missing = [service for service in self._services if self.found[service.store].how == _NO_PROGRAM]
        if missing:
            self._install(missing)
        for service in self._services:
            self._sweep(service, lambda owner: owner.is_abandoned(now), in_use_too=False)

    def close(self) -> None:
        try:
            for service in self._services:
                self._sweep(service, lambda owner: owner == self.run, in_use_too=True)
        finally:
            for server in self._private:
                server.stop()

    def _named(self, service: Service) -> Found:
        named = os.environ.get(service.variable)
        if named == OFF:
            return Found(None, f"{service.variable}={OFF}")
        if named:
            # A server asked for by name and silently replaced would test something else than what was asked.
            self._admit(service, named)
            return Found(named, service.variable)
        return Found(None, _NOT_RUNNING)

    def _wanted(self) -> list[Service]:
        """Those without a server that are not switched off."""
        left = [service for service in self._services if self.found[service.store].url is None]
        return [service for service in left if os.environ.get(service.variable) != OFF]

    def _look_at_the_usual_places(self) -> None:
        if os.environ.get("KSANA_TEST_NO_LOOPBACK") == "1":
            return
        for service in self._wanted():
            url = next((url for url in service.usual_urls() if self._is_admitted(service, url)), None)
            if url is not None:
                self.found[service.store] = Found(url, "already running")

    def _start_private(self) -> None:
        wanted = self._wanted()
        with ThreadPoolExecutor(max_workers=len(self._services)) as pool:
            for service, found in zip(wanted, pool.map(self._private_server, wanted), strict=True):
                self.found[service.store] = found

    def _private_server(self, service: Service) -> Found:
        try:
            server = start_private(service, str(self.run), lambda url: self._admit(service, url))
        except AdmissionError as refusal:
            return Found(None, str(refusal))
        if server is None:
            return Found(None, _NO_PROGRAM)
        self._private.append(server)
        return Found(server.url, "started for this run")

    def _install(self, missing: list[Service]) -> None:
        reason = why_not_installing() or install([service.package for service in missing], self._say)
        if reason is None:
            self._start_private()
            return
        for service in missing:
            self.found[service.store] = Found(None, f"{_NO_PROGRAM}; {reason}")

    def _is_admitted(self, service: Service, url: str) -> bool:
        try:
            self._admit(service, url)
        except AdmissionError:
            return False
        return True

    def _admit(self, service: Service, url: str) -> None:
        self._loop.run(service.admit(url))

    def _sweep(self, service: Service, may_go: Callable[[RunName], bool], *, in_use_too: bool) -> None:
        found = self.found.get(service.store)
        if found is None or found.url is None:
            return
        names = self._loop.run(service.leftovers(found.url, in_use_too=in_use_too))
        gone = [name for name in names if (owner := RunName.found_in(name)) is not None and may_go(owner)]
        self._loop.run(service.drop(found.url, gone))


_NOT_RUNNING = "none is running on loopback that lets the tests in"
_NO_PROGRAM = "none is running on loopback that lets the tests in, and none is installed"
