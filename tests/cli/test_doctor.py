"""`ksana doctor`: each thing it looks at, well and not well, and that it changes nothing."""

from __future__ import annotations

import json
import socket
import sqlite3
import sys
from collections.abc import Iterable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import click
import pytest

from ksana.cli.checks import Check, local_checks, port_check, server_checks
from ksana.config import Settings
from ksana.stores.schema_checks import Schema, judged
from ksana.stores.sql.migrate import known_migrations
from tests.cli.conftest import Ksana, Said
from tests.kit.migrated import migrate
from tests.services.databases import FreshDatabase, SharedDatabase

NOW = datetime(2026, 11, 16, 6, tzinfo=UTC)


def levels(checks: Iterable[Check]) -> dict[str, str]:
    return {check.name: check.level for check in checks}


def settings(path: Path, **values: object) -> Settings:
    made = Settings().having("storage.url", f"sqlite:///{path}/ksana.db")
    for key, value in values.items():
        made = made.having(key.replace("__", "."), value)
    return made


class Answering:
    """A server that says this of itself."""

    def __init__(self, **fields: Any) -> None:
        self.fields = {
            "version": "1",
            "started_at": "2026-11-16T05:00:00.000Z",
            "uptime_seconds": 3600.0,
            "nodes": [],
            "checks": [],
            **fields,
        }

    def ask(self, method: str, path: str) -> dict[str, Any]:
        assert (method, path) == ("GET", "/api/v2/system")
        return self.fields


def told(**fields: Any) -> dict[str, str]:
    return levels(server_checks(Answering(**fields), "1", NOW))  # type: ignore[arg-type]


def test_a_machine_that_is_well_has_no_faults(tmp_path: Path) -> None:
    assert set(levels(local_checks(settings(tmp_path))).values()) == {"ok"}


def test_what_is_wrong_here_is_named(tmp_path: Path) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_text(f"disk / ext4 rw 0 0\nserver:/x {tmp_path} nfs4 rw 0 0\n")
    open_to_all = settings(tmp_path, server__host="0.0.0.0", server__insecure=True, warnings=("two names differ",))
    found = levels(local_checks(open_to_all, mounts))
    assert (found["settings"], found["access"], found["file system"]) == ("warn", "bad", "bad")
    nowhere = Settings().having("storage.url", "postgresql://127.0.0.1:1/none")
    assert levels(local_checks(nowhere))["store"] == "bad"


def test_the_file_is_looked_at_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "ksana.db"
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE ksana_migrations (number INTEGER, checksum TEXT)")
        first = known_migrations()[0]
        database.execute("INSERT INTO ksana_migrations VALUES (?, ?)", [first.number, first.checksum])
        database.commit()
    before = path.read_bytes()
    found = levels(local_checks(settings(tmp_path)))
    assert (found["journal"], found["migrations"]) == ("warn", "warn")
    assert path.read_bytes() == before
    path.write_text("no database at all, but long enough to be looked at" * 20)
    assert levels(local_checks(settings(tmp_path)))["store"] == "bad"


@pytest.mark.parametrize("server", ["postgres", "mysql"])
def test_the_schema_of_a_server_is_looked_at_and_left_alone(server: str, request: pytest.FixtureRequest) -> None:
    fresh: FreshDatabase = request.getfixturevalue(f"fresh_{server}_database")
    shared: SharedDatabase = request.getfixturevalue(f"{server}_shared")
    virgin = Settings().having("storage.url", fresh())
    for _ in range(2):
        [found] = [check for check in local_checks(virgin) if check.name == "migrations"]
        assert (found.level, found.text) == ("warn", f"{len(known_migrations())} not applied yet")
    migrated = Settings().having("storage.url", shared.emptied(migrate))
    assert levels(local_checks(migrated))["migrations"] == "ok"


def test_a_server_that_lets_nobody_in_is_told(postgres_url: str) -> None:
    parts = urlsplit(postgres_url)
    nowhere = Settings().having("storage.url", parts._replace(path="/ksana_test_no_such_database").geturl())
    assert levels(local_checks(nowhere))["migrations"] == "bad"


def test_a_schema_of_another_program_is_told() -> None:
    known = {migration.number: migration.checksum for migration in known_migrations()}
    assert judged(known) == Schema(len(known))
    assert "newer" in judged({**known, 9999: "x"}).trouble
    assert "differs" in judged({**known, 1: "x"}).trouble


def test_a_port_is_free_ours_or_taken() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        busy = Settings().having("server.port", taken.getsockname()[1])
        assert port_check(busy, is_ours=False).level == "bad"
        assert port_check(busy, is_ours=True).level == "ok"


@pytest.mark.parametrize(
    ("fields", "name", "level"),
    [
        ({}, "clock", "ok"),
        ({"uptime_seconds": 3590.0}, "clock", "bad"),
        ({"version": "2"}, "version", "warn"),
        ({"nodes": [{"name": "a", "is_alive": False}]}, "nodes", "warn"),
        ({"checks": [{"name": "store", "level": "bad", "text": "down", "fix": None}]}, "server: store", "bad"),
    ],
)
def test_what_the_server_says_is_judged(fields: dict[str, Any], name: str, level: str) -> None:
    assert told(**fields)[name] == level


def test_clocks_may_differ_a_little() -> None:
    almost = NOW + timedelta(seconds=1)
    assert levels(server_checks(Answering(), "1", almost))["clock"] == "ok"  # type: ignore[arg-type]


def test_the_command_asks_where_the_server_would_listen(ksana: Ksana, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KSANA_HOST", "::1")
    monkeypatch.setenv("KSANA_PORT", "1")
    said = ksana("doctor", "--json")
    [server] = [check for check in map(json.loads, said.out.splitlines()) if check["name"] == "server"]
    assert (server["level"], "::1" in server["text"]) == ("warn", True)


def test_the_command_asks_a_running_server(asked: Ksana) -> None:
    said = asked("doctor", "--json")
    found = {check["name"]: check["level"] for check in map(json.loads, said.out.splitlines())}
    assert (found["server"], found["clock"], found["server: store"]) == ("ok", "ok", "ok")
    assert "server" not in asked("doctor", "--no-server", "-q").out.split()


def test_what_can_be_mended_safely_is_mended_after_asking(ksana: Ksana, tmp_path: Path) -> None:
    data = tmp_path / "a" / "data"
    words = ("doctor", "--no-server", "--data-dir", str(data), "--json")
    assert found_by(ksana(*words))["data directory"] == "warn"
    alone = ksana(*words, "--fix")
    assert alone.code == 2
    assert f"Make {data}?" in alone.err
    assert not data.exists()

    made = ksana(*words, "--fix", "--yes")
    assert f"made {data}" in made.err
    assert (found_by(made)["data directory"], data.stat().st_mode & 0o777) == ("ok", 0o700)

    path = data / "ksana.db"
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE ksana_migrations (number INTEGER PRIMARY KEY, name TEXT, checksum TEXT)")
        database.commit()
    path.chmod(0o644)
    assert found_by(ksana(*words))["file modes"] == "warn"
    mended = ksana(*words, "--fix", "--yes")
    assert "up to date" in mended.err
    assert "from others" in mended.err
    assert {found_by(mended)[name] for name in ("journal", "migrations", "file modes")} == {"ok"}
    assert path.stat().st_mode & 0o777 == 0o600
    assert "nothing to mend" in ksana(*words, "--fix", "--yes").err


def test_what_is_not_wanted_is_left_and_the_rest_is_mended(
    ksana: Ksana, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "ksana.db"
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE ksana_migrations (number INTEGER PRIMARY KEY, name TEXT, checksum TEXT)")
    path.chmod(0o666)
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    answers = iter(["n", "y"])
    monkeypatch.setattr(click.termui, "visible_prompt_func", lambda text: next(answers))
    found = found_by(ksana("doctor", "--no-server", "--data-dir", str(tmp_path), "--json", "--fix"))
    assert (found["migrations"], found["file modes"]) == ("warn", "ok")


def found_by(said: Said) -> dict[str, str]:
    return {check["name"]: check["level"] for check in map(json.loads, said.out.splitlines())}
