"""Steps that share a commit on SQLite: each succeeds or fails for itself."""

import asyncio
import queue
import shutil
import sqlite3
from pathlib import Path
from typing import Any, cast

import pytest

from ksana.domain.errors import AlreadyExists, InvalidArgument, NotFound, StoreUnavailable
from ksana.domain.jobs import Job
from ksana.domain.runs import Run
from ksana.stores.open import open_store
from ksana.stores.sql.statements import Statement
from ksana.stores.sql.store import SqlStore
from ksana.stores.sqlite import SqliteDatabase
from tests.stores.builders import a_job, a_run
from tests.stores.conftest import MakeStore


def broken(job: Job, active: int) -> Run:
    raise ZeroDivisionError


async def test_a_step_that_fails_undoes_only_itself(sqlite_stores: MakeStore) -> None:
    store = sqlite_stores()
    assert isinstance(store, SqlStore)
    await store.open()
    await store.add_jobs([a_job(1, ref="taken")])
    nonsense = Statement("UPDATE nobody SET nothing = 1")
    answers = await asyncio.gather(
        store.add_jobs([a_job(2)]),
        store.add_jobs([a_job(3), a_job(4, ref="taken")]),
        store.add_run(1, broken),
        store.add_run(404, lambda job, active: a_run(1)),
        store._database.write(lambda tx: tx.run(nonsense)),
        store.add_jobs([a_job(2**70)]),
        store.add_run(1, lambda job, active: a_run(2)),
        return_exceptions=True,
    )
    expected = [type(None), AlreadyExists, ZeroDivisionError, NotFound, StoreUnavailable, InvalidArgument, Run]
    assert [type(answer) for answer in answers] == expected
    assert {job.id for job in await store.get_jobs(range(1, 10))} == {1, 2}
    assert await store.get_runs([1, 2]) == [a_run(2)]
    await store.close()


async def test_a_commit_that_fails_fails_every_step_of_its_group(sqlite_stores: MakeStore, tmp_path: Path) -> None:
    store = sqlite_stores()
    await store.open()
    other = sqlite3.connect(tmp_path / "ksana.db", isolation_level=None)
    size = other.execute("PRAGMA page_count").fetchone()[0]
    database = store._database  # type: ignore[attr-defined]
    await database.write(lambda tx: tx.run(Statement(f"PRAGMA max_page_count = {size}")))
    answers = await asyncio.gather(
        *(store.add_jobs([a_job(n, description="x" * 100_000)]) for n in range(1, 30)), return_exceptions=True
    )
    assert {type(answer) for answer in answers} <= {StoreUnavailable, type(None)}
    refused = {n for n, answer in enumerate(answers, 1) if answer is not None}
    assert refused
    assert {job.id for job in await store.get_jobs(range(1, 30))} == set(range(1, 30)) - refused
    await database.write(lambda tx: tx.run(Statement("PRAGMA max_page_count = 1000000")))
    await store.add_jobs([a_job(99)])
    other.close()
    await store.close()


async def test_a_file_another_process_writes_to_is_waited_for(sqlite_stores: MakeStore, tmp_path: Path) -> None:
    store = sqlite_stores()
    await store.open()
    other = sqlite3.connect(tmp_path / "ksana.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    waiting = asyncio.ensure_future(store.add_jobs([a_job(1)]))
    assert await store.get_jobs([1]) == []
    assert not waiting.done()
    other.execute("COMMIT")
    await waiting
    assert await store.get_jobs([1]) == [a_job(1)]
    other.close()
    await store.close()


async def test_a_step_whose_caller_gave_up_does_not_disturb_the_others(sqlite_stores: MakeStore) -> None:
    store = sqlite_stores()
    await store.open()
    given_up = asyncio.ensure_future(store.add_jobs([a_job(1)]))
    await asyncio.sleep(0)
    given_up.cancel()
    await store.add_jobs([a_job(2)])
    assert {job.id for job in await store.get_jobs([1, 2])} >= {2}
    await store.close()


async def test_every_change_is_flushed_before_it_is_acknowledged(tmp_path: Path) -> None:
    database = SqliteDatabase(tmp_path / "ksana.db")
    await database.open()
    journal = await database.write(lambda tx: tx.rows(Statement("PRAGMA journal_mode")))
    synchronous = await database.write(lambda tx: tx.rows(Statement("PRAGMA synchronous")))
    assert (journal, synchronous) == ([("wal",)], [(2,)])
    await database.close()


@pytest.mark.parametrize("url", ["sqlite://relative.db", "sqlite:///relative.db"])
def test_a_relative_path_is_refused(url: str) -> None:
    with pytest.raises(InvalidArgument, match="absolute"):
        open_store(url)


class Pause:
    """A queue in which nothing comes for a while, and then the word to stop."""

    def get(self, timeout: float | None = None) -> None:
        if timeout is not None:
            raise queue.Empty


@pytest.mark.parametrize(("changes", "is_settled"), [(2000, True), (1999, False)])
def test_what_was_written_goes_to_the_file_when_there_is_nothing_to_do(
    tmp_path: Path, changes: int, is_settled: bool
) -> None:
    database = SqliteDatabase(tmp_path / "ksana.db")
    connection = database._connect_writer()
    connection.execute("CREATE TABLE numbers (number INTEGER)")
    connection.execute("PRAGMA wal_checkpoint(PASSIVE)")
    connection.execute("BEGIN")
    connection.executemany("INSERT INTO numbers VALUES (?)", [(number,) for number in range(changes)])
    connection.execute("COMMIT")
    database._queue = cast(Any, Pause())
    assert database._next(connection) is None
    # The file without its log.
    shutil.copy(tmp_path / "ksana.db", tmp_path / "copy.db")
    copy = sqlite3.connect(tmp_path / "copy.db")
    assert copy.execute("SELECT COUNT(*) FROM numbers").fetchall() == [(changes if is_settled else 0,)]
    copy.close()
    connection.close()
