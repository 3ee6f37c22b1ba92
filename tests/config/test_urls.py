"""Store addresses in every spelling, and passwords that stay hidden."""

from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ksana.config import RefusedError, mask_url, store_url

DATA = Path("/srv/data")
CWD = Path("/home/k")


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("sqlite:", "sqlite:////srv/data/ksana.db"),
        ("sqlite://", "sqlite:////srv/data/ksana.db"),
        ("sqlite:state.db", "sqlite:////home/k/state.db"),
        ("sqlite:///state.db", "sqlite:////home/k/state.db"),
        ("sqlite:/x/state.db", "sqlite:////x/state.db"),
        ("sqlite:////x/state (1).db", "sqlite:////x/state (1).db"),
        ("sqlite+aiosqlite:///state.db", "sqlite:////home/k/state.db"),
        ("json:", "json:/srv/data"),
        ("json:here", "json:/home/k/here"),
        ("json:///x", "json:/x"),
        ("postgres://u:p@h/d", "postgresql://u:p@h/d"),
        ("postgresql+asyncpg://u@h:5432/d?sslmode=require", "postgresql://u@h:5432/d?sslmode=require"),
        ("postgresql:///d?host=/run/postgresql", "postgresql:///d?host=/run/postgresql"),
        ("MySQL://u:p%40q@h:3306/d", "mysql://u:p%40q@h:3306/d"),
        ("mariadb+pymysql://u@[::1]:3307/d", "mysql://u@[::1]:3307/d"),
        ("redis://h", "redis://h"),
        ("rediss://:p@h:6380/3?prefix=mine", "rediss://:p@h:6380/3?prefix=mine"),
        ("unix:///run/redis.sock?db=1", "unix:///run/redis.sock?db=1"),
        ("unix://:p@/run/redis.sock", "unix://:p@/run/redis.sock"),
    ],
)
def test_a_url_is_normalised(text: str, url: str) -> None:
    assert store_url(text, DATA, CWD) == (url, ())


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("user:pass@tcp(host:3306)/db?parseTime=true&loc=UTC", "mysql://user:pass@host:3306/db"),
        (
            "user:pass@tcp(h:1)/db?charset=utf8mb4,utf8&parseTime=True&loc=Local",
            "mysql://user:pass@h:1/db?charset=utf8mb4",
        ),
        ("user@tcp(h)/db", "mysql://user@h/db"),
        ("user:@tcp/db", "mysql://user:@127.0.0.1:3306/db"),
        ("u:p@/db", "mysql://u:p@127.0.0.1:3306/db"),
        ("tcp(h:1)/db", "mysql://h:1/db"),
        ("u:p@tcp([::1]:3306)/db?tls=true", "mysql://u:p@[::1]:3306/db?tls=true"),
        ("u:a@b:c/d?e#f%g@tcp(h:1)/db", "mysql://u:a%40b%3Ac%2Fd%3Fe%23f%25g@h:1/db"),
        ("u:x://y@tcp(h:1)/db", "mysql://u:x%3A%2F%2Fy@h:1/db"),
        ("mysql:p@tcp(h:1)/db", "mysql://mysql:p@h:1/db"),
        ("u:p@unix(/run/my.sock)/db", "mysql://u:p@localhost/db?unix_socket=%2Frun%2Fmy.sock"),
    ],
)
def test_a_go_dsn_becomes_a_mysql_url(text: str, url: str) -> None:
    assert store_url(text, DATA, CWD) == (url, ())


@pytest.mark.parametrize(
    "text",
    [
        "",
        "ksana.db",
        "oracle://h/d",
        "sqlite://state.db",
        "sqlite::memory:",
        "sqlite:x.db?mode=ro",
        "mysql://u:p@h",
        "mysql:///d",
        "mysql://u:p@h:x/d",
        "mysql://u:p@tcp(h:1)/d",
        "mysql://u:p@h:0/d",
        "postgresql://u:p@h:70000/d",
        "redis://h/name",
        "redis:///0",
        "unix://",
        "unix://h/run/redis.sock",
        "u:p@tcp(h:1)/",
        "u:p@tcp(h:x)/d",
        "u:p@tcp(h:1)",
    ],
)
def test_what_is_no_store_is_refused(text: str) -> None:
    with pytest.raises(RefusedError):
        store_url(text, DATA, CWD)


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("mysql://u:hunter2@h/d", "mysql://u:***@h/d"),
        ("redis://:hunter2@h:6379/0", "redis://:***@h:6379/0"),
        ("unix://:hunter2@/run/redis.sock", "unix://:***@/run/redis.sock"),
        ("mysql://u:hun@ter2/x@h/d", "mysql://u:***@h/d"),
        (
            "postgresql:///d?user=u&password=hunter2&sslmode=off",
            "postgresql:///d?user=u&password=***&sslmode=off",
        ),
        ("u:hunter2@tcp(h:1)/d?loc=UTC", "u:***@tcp(h:1)/d?loc=UTC"),
        ("u:a://hunter2@tcp(h:1)/d", "u:***@tcp(h:1)/d"),
        ("u:hun@ter2@tcp(h:1)/d", "u:***@tcp(h:1)/d"),
        ("postgresql://h:5432/d", "postgresql://h:5432/d"),
        ("sqlite:////srv/ksana.db", "sqlite:////srv/ksana.db"),
        ("json:/srv", "json:/srv"),
    ],
)
def test_a_password_is_never_shown(text: str, masked: str) -> None:
    assert mask_url(text) == masked


PASSWORDS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1)


@given(PASSWORDS)
def test_any_password_survives_the_way_from_a_go_dsn_to_a_url(password: str) -> None:
    url = store_url(f"u:{password}@tcp(h:1)/db", DATA, CWD).url
    assert unquote(urlsplit(url).password or "") == password
    assert mask_url(url) == "mysql://u:***@h:1/db"


@given(PASSWORDS)
def test_any_password_in_a_go_dsn_is_masked(password: str) -> None:
    assert mask_url(f"u:{password}@tcp(h:1)/db") == "u:***@tcp(h:1)/db"
