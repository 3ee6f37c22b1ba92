"""`ksana db backup` and `restore`: a store at one instant, and nothing lost that nobody wanted to lose."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.cli.conftest import Ksana
from tests.cli.nodes import serving


def names(ksana: Ksana) -> list[str]:
    return [json.loads(line)["name"] for line in ksana("key", "list", "--json").out.splitlines()]


def make_key(ksana: Ksana, name: str) -> None:
    assert ksana("key", "create", "--name", name).code == 0


def test_a_store_is_put_back_as_it_was(ksana: Ksana, tmp_path: Path) -> None:
    make_key(ksana, "before")
    said = ksana("db", "backup", "saved.db")
    assert (said.code, said.out.startswith("saved.db has ")) == (0, True)
    assert (tmp_path / "saved.db").stat().st_mode & 0o777 == 0o600
    make_key(ksana, "after")
    refused = ksana("db", "restore", "saved.db")
    assert refused.code == 2
    assert "--yes" in refused.err
    assert names(ksana) == ["before", "after"]
    assert ksana("db", "restore", "saved.db", "--yes").code == 0
    assert names(ksana) == ["before"]
    assert {path.name for path in tmp_path.iterdir()} == {"data", "saved.db"}


def test_a_store_that_is_gone_is_put_back_without_a_question(ksana: Ksana, tmp_path: Path) -> None:
    make_key(ksana, "kept")
    ksana("db", "backup", "saved.db")
    assert ksana("db", "restore", "saved.db", "--data-dir", "elsewhere").code == 0
    assert "kept" in ksana("key", "list", "--data-dir", "elsewhere").out


def test_the_log_of_a_node_that_was_killed_is_not_taken_for_that_of_the_backup(ksana: Ksana, tmp_path: Path) -> None:
    make_key(ksana, "before")
    ksana("db", "backup", "saved.db")
    crashed = tmp_path / "crashed"
    crashed.mkdir()
    with closing(sqlite3.connect(tmp_path / "data" / "ksana.db")) as node:
        node.execute("UPDATE ksana_keys SET name = 'in the log'")
        node.commit()
        for file in (tmp_path / "data").iterdir():
            (crashed / file.name).write_bytes(file.read_bytes())
    assert (crashed / "ksana.db-wal").stat().st_size > 0
    assert ksana("db", "restore", "saved.db", "--yes", "--data-dir", "crashed").code == 0
    assert json.loads(ksana("key", "list", "--json", "--data-dir", "crashed").out)["name"] == "before"


async def test_a_node_may_be_saved_at_work_but_not_restored(ksana: Ksana, tmp_path: Path) -> None:
    async with serving(tmp_path) as node:
        status, job = await node.call("POST", "/api/v2/jobs", {"name": "kept", "target": {"kind": "noop"}})
        assert status == 201
        assert ksana("db", "backup", "saved.db").code == 0
        refused = ksana("db", "restore", "saved.db", "--yes")
        assert refused.code == 4
        assert "stop them first" in refused.err
    with closing(sqlite3.connect(tmp_path / "saved.db")) as saved:
        assert saved.execute("SELECT id, name FROM ksana_jobs").fetchall() == [(job["id"], "kept")]


def test_what_is_no_backup_is_refused_and_the_store_left_alone(ksana: Ksana, tmp_path: Path) -> None:
    make_key(ksana, "kept")
    (tmp_path / "text.db").write_text("no database at all, but long enough to be looked at" * 20)
    with closing(sqlite3.connect(tmp_path / "other.db")) as other:
        other.execute("CREATE TABLE things (id INTEGER)")
    ksana("db", "backup", "newer.db")
    with closing(sqlite3.connect(tmp_path / "newer.db")) as newer:
        newer.execute("INSERT INTO ksana_migrations VALUES (9999, 'later', 'x')")
        newer.commit()
    for file, code, words in (
        ("nowhere.db", 3, "there is no file nowhere.db"),
        ("text.db", 2, "no database"),
        ("other.db", 2, "no store of Ksana"),
        ("newer.db", 2, "another version"),
        ("data/ksana.db", 2, "the store itself"),
    ):
        said = ksana("db", "restore", file, "--yes")
        assert (said.code, words in said.err) == (code, True), said
    assert names(ksana) == ["kept"]
    assert ksana("db", "backup", "newer.db").code == 4
    assert ksana("db", "backup", "saved.db", "--data-dir", "nowhere").code == 3


@pytest.mark.parametrize(
    ("store", "tool"),
    [
        ("postgresql://127.0.0.1:1/none", "pg_dump"),
        ("mysql://127.0.0.1:1/none", "mysqldump"),
        ("redis://127.0.0.1:1", "redis-cli --rdb"),
        ("json:data", "cp -a"),
    ],
)
def test_other_stores_are_told_their_tool(ksana: Ksana, store: str, tool: str) -> None:
    for words in (("backup", "saved"), ("restore", "saved", "--yes")):
        said = ksana("db", *words, "--store", store)
        assert said.code == 2
        assert tool in said.err
