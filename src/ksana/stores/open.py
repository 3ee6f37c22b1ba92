"""From an address to the store that lives there; the driver is imported only when its store is asked for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ksana.domain.errors import InvalidArgument
from ksana.domain.ports import Store
from ksana.stores.sql.store import SqlStore


def open_store(url: str, *, pool_size: int = 10, pool_idle: int = 2, pool_lifetime: float = 0) -> Store:
    """The store at `sqlite:////path`, `json:/directory`, `postgresql://…`, `mysql://…` or `redis://…`; `open()` it
    before use.

    At rest `pool_idle` connections are kept. A connection is replaced after `pool_lifetime` seconds, 0 for
    never. A file has no pool.
    """
    if url[:5].lower() == "json:":
        return _json(url[5:])
    scheme, separator, rest = url.partition("://")
    make = _STORES.get(scheme.lower())
    if make is None or not separator:
        raise InvalidArgument.of("store", f"no store is called {scheme!r}; use one of {', '.join(_STORES)}, json")
    return make(url, rest, pool_size, pool_idle, pool_lifetime)


def _sqlite(url: str, rest: str, pool_size: int, pool_idle: int, pool_lifetime: float) -> Store:
    from ksana.stores.sqlite import SqliteDatabase

    if not rest.startswith("//"):
        raise InvalidArgument.of("store", "name the file by its absolute path: sqlite:////var/lib/ksana/ksana.db")
    return SqlStore(SqliteDatabase(Path(rest[1:])))


def _json(rest: str) -> Store:
    from ksana.stores.json.store import JsonStore

    directory = Path(rest.removeprefix("//"))
    if not directory.is_absolute():
        raise InvalidArgument.of("store", "name the directory by its absolute path: json:/var/lib/ksana")
    return JsonStore(directory)


def _postgres(url: str, rest: str, pool_size: int, pool_idle: int, pool_lifetime: float) -> Store:
    try:
        from ksana.stores.postgres import PostgresDatabase
    except ImportError as error:
        raise _missing("PostgreSQL", "postgres", error) from error
    return SqlStore(PostgresDatabase(url, pool_size, pool_idle, pool_lifetime))


def _mysql(url: str, rest: str, pool_size: int, pool_idle: int, pool_lifetime: float) -> Store:
    try:
        from ksana.stores.mysql import MysqlDatabase
    except ImportError as error:
        raise _missing("MySQL", "mysql", error) from error
    return SqlStore(MysqlDatabase(url, pool_size, pool_idle, pool_lifetime))


def _redis(url: str, rest: str, pool_size: int, pool_idle: int, pool_lifetime: float) -> Store:
    try:
        from ksana.stores.redis.store import RedisStore
    except ImportError as error:
        raise _missing("Redis", "redis", error) from error
    return RedisStore(url, pool_size, pool_lifetime)


def _missing(database: str, extra: str, error: ImportError) -> InvalidArgument:
    return InvalidArgument.of(
        "store", f"{database} needs a driver ({error}); run: pip install 'ksana-scheduler[{extra}]'"
    )


_STORES: dict[str, Callable[[str, str, int, int, float], Store]] = {
    "sqlite": _sqlite,
    "postgresql": _postgres,
    "postgres": _postgres,
    "mysql": _mysql,
    "mariadb": _mysql,
    "redis": _redis,
    "rediss": _redis,
    "unix": _redis,
}
