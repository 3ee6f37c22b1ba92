"""`ksana store copy`: from address to address, with an answer a person and a program can read."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import shutil
import subprocess
import sys
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TypeVar

import pytest

from ksana.cli.store import _Lines
from ksana.domain.archive import Section
from ksana.domain.ports import Store
from ksana.stores.copy import CopyProgress
from ksana.stores.open import open_store
from tests.cli.conftest import Ksana
from tests.services.databases import FreshDatabase
from tests.stores.builders import a_job
from tests.stores.everything import CARRIED, contents, everything, fill

T = TypeVar("T")


def using(url: str, use: Callable[[Store], Awaitable[T]]) -> T:
    async def go() -> T:
        store = open_store(url)
        await store.open()
        try:
            return await use(store)
        finally:
            await store.close()

    return asyncio.run(go())


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file that holds a little of everything, to be copied."""
    path = tmp_path_factory.mktemp("filled") / "full.db"
    using(f"sqlite:///{path}", fill)
    return path


@pytest.fixture
def full(filled: Path, tmp_path: Path) -> str:
    """The address of a store that holds a little of everything, as a person writes it."""
    shutil.copy(filled, tmp_path / "full.db")
    return "sqlite:full.db"


def test_everything_is_copied_and_counted(ksana: Ksana, full: str, tmp_path: Path) -> None:
    said = ksana("store", "copy", full, "sqlite:new.db")
    assert said.code == 0
    sizes = {section: len(items) for section, items in everything().items()}
    head, *lines = said.out.splitlines()
    assert head.split() == ["copied", "already", "there"]
    assert [line.split() for line in lines] == [[section.value, str(sizes[section]), "0"] for section in CARRIED]
    assert [f"{section.value}: {sizes[section]} of {sizes[section]}" for section in CARRIED] == said.err.splitlines()[
        :-1
    ]
    assert said.err.splitlines()[-1] == f"copied sqlite:///{tmp_path}/full.db to sqlite:///{tmp_path}/new.db"
    assert using(f"sqlite:///{tmp_path}/new.db", contents) == everything()


def test_programs_get_json(ksana: Ksana, full: str, tmp_path: Path) -> None:
    told = json.loads(ksana("store", "copy", full, "sqlite:new.db", "--json").out)
    assert (told["from"], told["to"]) == (f"sqlite:///{tmp_path}/full.db", f"sqlite:///{tmp_path}/new.db")
    assert told["resumed"] is False
    assert list(told["sections"]) == CARRIED
    assert told["sections"]["jobs"] == {"copied": len(everything()[Section.JOBS]), "present": 0}


def test_a_file_becomes_a_directory_that_people_can_read(ksana: Ksana, full: str, tmp_path: Path) -> None:
    assert ksana("store", "copy", full, "json:readable").code == 0
    assert "emoji 🚀 naïve" in (tmp_path / "readable" / "jobs.json").read_text()
    assert ksana("store", "copy", "json:readable", "sqlite:back.db").code == 0
    assert using(f"sqlite:///{tmp_path}/back.db", contents) == everything()


@pytest.mark.parametrize("name", ["postgres", "mysql"])
def test_a_file_moves_to_a_server_and_back(
    request: pytest.FixtureRequest, ksana: Ksana, full: str, tmp_path: Path, name: str
) -> None:
    fresh: FreshDatabase = request.getfixturevalue(f"fresh_{name}_database")
    url = fresh()
    assert ksana("store", "copy", full, url).code == 0
    assert ksana("store", "copy", url, "sqlite:back.db").code == 0
    assert using(f"sqlite:///{tmp_path}/back.db", contents) == everything()


def test_a_copy_that_was_interrupted_goes_on(
    ksana: Ksana, full: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def pressed(self: _Lines, progress: CopyProgress) -> None:
        if progress.section is Section.ATTEMPTS:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(_Lines, "show", pressed)
        said = ksana("store", "copy", full, "sqlite:new.db")
    assert (said.code, said.out) == (130, "")
    assert "the same command again" in said.err
    said = ksana("store", "copy", full, "sqlite:new.db")
    assert said.code == 0
    assert "going on where an earlier copy was cut short" in said.err
    jobs = str(len(everything()[Section.JOBS]))
    assert ["jobs", "0", jobs] in [line.split() for line in said.out.splitlines()]
    assert using(f"sqlite:///{tmp_path}/new.db", contents) == everything()


def test_what_could_do_harm_is_refused_unless_forced(ksana: Ksana, full: str, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/other.db"
    using(url, lambda store: store.add_jobs([a_job(1, name="mine")]))
    said = ksana("store", "copy", full, "sqlite:other.db")
    assert (said.code, said.out) == (1, "")
    assert "TO holds other data" in said.err
    assert "--force" in said.err
    said = ksana("store", "copy", full, "sqlite:other.db", "--force", "--json")
    assert said.code == 0
    assert json.loads(said.out)["sections"]["jobs"]["present"] == 1


def test_nodes_must_stop_first(ksana: Ksana, full: str, tmp_path: Path) -> None:
    lease = timedelta(minutes=1)
    using(f"sqlite:///{tmp_path}/full.db", lambda store: store.join("busy", datetime.now(UTC), lease))
    said = ksana("store", "copy", full, "sqlite:new.db")
    assert (said.code, said.out) == (1, "")
    assert "FROM has nodes at work (busy)" in said.err
    assert ksana("store", "copy", full, "sqlite:new.db", "--force").code == 0


@pytest.mark.parametrize(
    ("source", "target", "code", "words"),
    [
        ("sqlite:nowhere.db", "sqlite:new.db", 3, "FROM: there is nothing at sqlite:"),
        ("json:.", "sqlite:new.db", 3, "FROM: there is nothing at json:"),
        ("sqlite:full.db", "sqlite:./full.db", 2, "TO: is the same store as FROM"),
        ("floppy://a:hunter2@b", "sqlite:new.db", 2, "FROM: 'floppy://a:***@b' is not valid"),
        ("sqlite:full.db", "floppy://a:hunter2@b", 2, "TO: 'floppy://a:***@b' is not valid"),
        ("sqlite:full.db", "postgresql://me:hunter2@127.0.0.1:1/none", 5, "PostgreSQL does not answer"),
        ("mysql://me:hunter2@127.0.0.1:1/none", "sqlite:new.db", 5, "MySQL does not answer"),
    ],
)
def test_a_store_that_is_none_is_named(
    ksana: Ksana, full: str, tmp_path: Path, source: str, target: str, code: int, words: str
) -> None:
    said = ksana("store", "copy", source, target)
    assert (said.code, said.out) == (code, "")
    assert words in said.err
    assert "hunter2" not in said.err
    assert not (tmp_path / "nowhere.db").exists()


def test_the_store_of_the_data_directory_needs_no_path(ksana: Ksana, tmp_path: Path) -> None:
    ksana("key", "create", "--data-dir", "here", "--name", "mine")
    assert ksana("store", "copy", "sqlite:", "sqlite:new.db", "--data-dir", "here").code == 0
    assert "\tmine\t" in ksana("key", "list", "--store", "sqlite:new.db").out


def test_a_large_section_is_told_of_by_tenths(capsys: pytest.CaptureFixture[str]) -> None:
    lines = _Lines()
    for done in range(0, 20_001, 500):
        lines.show(CopyProgress(Section.RUNS, done, 20_000))
    assert capsys.readouterr().err.splitlines() == [f"runs: {done} of 20000" for done in range(2000, 20_001, 2000)]


def test_a_terminal_shows_a_bar(full: str, tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "ksana", "store", "copy", full, "sqlite:new.db"]
    try:
        done = subprocess.run(command, cwd=tmp_path, stderr=theirs, stdout=subprocess.PIPE, check=True, timeout=30)
        seen = os.read(ours, 100_000).decode()
    finally:
        os.close(theirs)
        os.close(ours)
    assert "100%" in seen
    assert all(section.value in seen for section in CARRIED)
    assert done.stdout.decode().splitlines()[0].split() == ["copied", "already", "there"]
