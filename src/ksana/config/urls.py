"""Store addresses: every accepted spelling becomes one URL form, and no password is ever shown.

sqlite:///PATH · json:DIR · postgresql://… · mysql://… · redis://… · rediss://… · unix://SOCKET  (paths are absolute)
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from ksana.config.kinds import RefusedError

DATABASE_FILE = "ksana.db"
JSON_FILE = "jobs.json"

_SCHEMES = {
    "postgres": "postgresql",
    "postgresql": "postgresql",
    "mysql": "mysql",
    "mariadb": "mysql",
    "redis": "redis",
    "rediss": "rediss",
    # A Redis server on this machine, as its own tools write it.
    "unix": "unix",
}
_URL = re.compile(r"(?P<scheme>[a-zA-Z][a-zA-Z0-9]*)(?:\+[a-z0-9]+)?://(?P<rest>.*)", re.DOTALL)
# user:password@net(address)/database?parameters; as in Go, all that stands before the last @ is credentials.
_GO_DSN = re.compile(
    r"(?:(?P<user>[^:@]*)(?::(?P<password>.*))?@)?(?P<net>tcp6?|unix)?(?:\((?P<address>[^()]*)\))?"
    r"/(?P<database>[^/?]*)(?:\?(?P<parameters>.*))?",
    re.DOTALL,
)
# Times are always read as times and stored in UTC, which is what these two ask of the Go driver.
_GO_SATISFIED = frozenset({"parsetime", "loc"})
_GO_KEPT = frozenset({"charset", "tls"})
_SECRET_PARAMETER = re.compile(r"([?&][^=&#]*(?:password|passwd|pwd|secret|token)[^=&#]*=)[^&#]*", re.IGNORECASE)


class StoreUrl(NamedTuple):
    """A normal store URL, and the parameters of a foreign DSN that have no meaning here."""

    url: str
    ignored: tuple[str, ...] = ()


def store_url(text: str, directory: Path, cwd: Path) -> StoreUrl:
    """Normalise a store address, or raise RefusedError. File stores without a path live in `directory`."""
    scheme, colon, rest = text.partition(":")
    family = scheme.lower().partition("+")[0] if colon else ""
    if family == "sqlite":
        return StoreUrl(f"sqlite:///{_path(rest, '///', directory / DATABASE_FILE, cwd)}")
    if family == "json":
        return StoreUrl(f"json:{_path(rest, '//', directory, cwd)}")
    if url := _URL.fullmatch(text):
        return StoreUrl(_server_url(url["scheme"].lower(), url["rest"]))
    if dsn := _GO_DSN.fullmatch(text):
        return _from_go(dsn)
    raise RefusedError


def default_store_url(directory: Path) -> str:
    """SQLite, unless the directory already holds a JSON store and no database."""
    if (directory / JSON_FILE).exists() and not (directory / DATABASE_FILE).exists():
        return f"json:{directory}"
    return f"sqlite:///{directory / DATABASE_FILE}"


def _path(rest: str, slashes: str, default: Path, cwd: Path) -> Path:
    path = rest.removeprefix(slashes) if rest.startswith(slashes) else rest
    if path in ("", "//"):
        return default
    if path.startswith("//") and not rest.startswith(slashes):
        raise RefusedError(f"a path follows the scheme; write three slashes and the path, or {rest[2:]!r} alone")
    if "?" in path or ":memory:" in path:
        raise RefusedError("state lives in a file here: give its path, without parameters")
    return cwd / path


def _server_url(scheme: str, rest: str) -> str:
    if scheme not in _SCHEMES:
        raise RefusedError(f"there is no store called {scheme}")
    url = f"{_SCHEMES[scheme]}://{rest}"
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise RefusedError("its host or port is malformed; write @ : / ? # % in a password as %40 %3A …") from error
    if port == 0 or (host and not re.fullmatch(r"[a-z0-9_.:%-]+", host)) or re.search(r"\s", url):
        raise RefusedError("its host or port is malformed; write @ : / ? # % in a password as %40 %3A …")
    if scheme == "unix" and (host or not parts.path.strip("/")):
        raise RefusedError("name the socket of Redis by its absolute path, such as unix:///run/redis/redis.sock")
    if not host and _SCHEMES[scheme] not in ("postgresql", "unix"):
        raise RefusedError("it names no host")
    if _SCHEMES[scheme] == "mysql" and not parts.path.strip("/"):
        raise RefusedError("it names no database")
    if "redis" in scheme and not re.fullmatch(r"/?[0-9]*", parts.path):
        raise RefusedError("after the host comes the number of a database, such as /0")
    return url


def _from_go(dsn: re.Match[str]) -> StoreUrl:
    if not dsn["database"]:
        raise RefusedError("it names no database")
    kept: dict[str, str] = {}
    ignored = []
    for name, value in parse_qsl(dsn["parameters"] or "", keep_blank_values=True):
        if name.lower() in _GO_KEPT:
            kept[name.lower()] = value.split(",")[0]
        elif name.lower() not in _GO_SATISFIED:
            ignored.append(name)
    host = dsn["address"] or "127.0.0.1:3306"
    if dsn["net"] == "unix":
        kept["unix_socket"] = host
        host = "localhost"
    credentials = ""
    if dsn["user"]:
        password = "" if dsn["password"] is None else f":{quote(dsn['password'], safe='')}"
        credentials = f"{quote(dsn['user'], safe='')}{password}@"
    query = f"?{urlencode(kept)}" if kept else ""
    return StoreUrl(_server_url("mysql", f"{credentials}{host}/{dsn['database']}{query}"), tuple(ignored))


def mask_url(text: str) -> str:
    """The address with its password hidden. Malformed ones hide rather too much than too little."""
    before = r"^([a-zA-Z][a-zA-Z0-9+.-]*://[^:/@?#]*:).*@" if _URL.fullmatch(text) else r"^([^:@]*:).*@"
    return _SECRET_PARAMETER.sub(r"\1***", re.sub(before, r"\1***@", text, flags=re.DOTALL))
