"""What an address says of a store."""

from __future__ import annotations

from pathlib import Path

import pytest

from ksana.stores.size import kind_of, size_of


@pytest.mark.parametrize(
    ("url", "kind"),
    [
        ("sqlite:////srv/ksana.db", "sqlite"),
        ("json:/srv/ksana", "json"),
        ("postgres://u@h/d", "postgresql"),
        ("mariadb://u@h/d", "mysql"),
        ("rediss://h", "redis"),
        ("unix:///run/redis.sock", "redis"),
    ],
)
def test_every_address_names_its_kind(url: str, kind: str) -> None:
    assert kind_of(url) == kind


def test_files_are_measured_and_servers_are_not(tmp_path: Path) -> None:
    (tmp_path / "ksana.db").write_bytes(b"x" * 100)
    (tmp_path / "ksana.db-wal").write_bytes(b"x" * 20)
    (tmp_path / "jobs.json").write_bytes(b"x" * 7)
    (tmp_path / "history-1.jsonl").write_bytes(b"x" * 3)
    assert size_of(f"sqlite:///{tmp_path}/ksana.db") == 120
    assert size_of(f"json:{tmp_path}") == 10
    assert size_of(f"json:{tmp_path}/none") == 0
    assert size_of("postgresql://u@h/d") is None
