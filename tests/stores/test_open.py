"""From an address to a store."""

import builtins
import sys
from typing import Any

import pytest

from ksana.domain.errors import InvalidArgument
from ksana.stores.open import open_store
from ksana.stores.redis.store import RedisStore
from ksana.stores.sql.store import SqlStore


@pytest.mark.parametrize(
    "url",
    [
        "sqlite:////var/lib/ksana.db",
        "postgres://u@h/d",
        "postgresql://u@h/d",
        "mysql://u@h/d",
        "mariadb://u@h/d",
        "MySQL://u@h/d",
    ],
)
def test_a_store_is_chosen_by_its_scheme(url: str) -> None:
    assert isinstance(open_store(url, pool_size=3, pool_lifetime=60), SqlStore)


@pytest.mark.parametrize("url", ["redis://h", "rediss://u:p@h:6380/1?prefix=mine", "unix:///run/redis.sock?db=1"])
def test_redis_is_found_by_host_or_socket(url: str) -> None:
    assert isinstance(open_store(url, pool_size=3, pool_lifetime=60), RedisStore)


@pytest.mark.parametrize("url", ["oracle://u@h/d", "", "sqlite", "/var/lib/ksana.db"])
def test_an_address_of_no_store_is_refused(url: str) -> None:
    with pytest.raises(InvalidArgument, match="sqlite, postgresql"):
        open_store(url)


@pytest.mark.parametrize(
    ("url", "driver", "extra"),
    [
        ("postgresql://u@h/d", "asyncpg", "postgres"),
        ("mysql://u@h/d", "asyncmy", "mysql"),
        ("redis://h", "redis", "redis"),
    ],
)
def test_a_missing_driver_is_named_with_what_installs_it(
    monkeypatch: pytest.MonkeyPatch, url: str, driver: str, extra: str
) -> None:
    for name in [name for name in sys.modules if name.startswith(f"ksana.stores.{extra}")]:
        monkeypatch.delitem(sys.modules, name)
    real = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name.partition(".")[0] == driver:
            raise ImportError(f"No module named {driver!r}")
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(InvalidArgument, match=rf"pip install 'ksana-scheduler\[{extra}\]'"):
        open_store(url)
