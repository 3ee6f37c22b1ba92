"""What the tests need to know of a kind of server: where it is, how to start one, how to share it."""

from pathlib import Path
from typing import Protocol

import msgspec


class AdmissionError(Exception):
    """A server does not answer, or does not let the tests make databases; the text says which."""


class Recipe(msgspec.Struct, frozen=True):
    """How to bring up a throw-away server in an empty directory."""

    prepare: list[list[str]]
    serve: list[str]
    url: str
    stop_signal: int
    user: str
    """The unprivileged account to run it as when the tests run as root."""


class Service(Protocol):
    """One kind of server."""

    store: str
    variable: str
    """The environment variable that names a server to use."""
    package: str
    """The Debian package that brings it."""

    def usual_urls(self) -> list[str]: ...

    async def admit(self, url: str) -> None:
        """Return if the tests may work on this server; raise AdmissionError otherwise."""

    def recipe(self, directory: Path, port: int) -> Recipe | None:
        """Say how to start a private server; None when its programs are not installed."""

    async def leftovers(self, url: str, *, in_use_too: bool) -> list[str]:
        """Name what is on the server and carries the tests' prefix."""

    async def drop(self, url: str, names: list[str]) -> None:
        """Remove these, ending whatever is still connected to them."""


class Visit(Protocol):
    """A connection to one database whose tables stay the same."""

    async def filled_tables(self) -> list[str]:
        """Name the tables that hold at least one row."""

    async def empty(self, keep: frozenset[str]) -> None:
        """Delete every row of every table but these, whatever refers to it."""

    async def close(self) -> None: ...


class SqlService(Service, Protocol):
    """A server on which a test can have a database to itself."""

    async def create(self, url: str, name: str) -> str:
        """Make an empty database and give its URL."""

    async def visit(self, url: str) -> Visit:
        """Connect to a database that has its tables."""
