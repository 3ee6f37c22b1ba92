"""Rows go into SQLite by statements of a few sizes, filled up with rows that are left out: no other row may be."""

import sqlite3
from pathlib import Path

import pytest

from ksana.stores.sql import tables
from ksana.stores.sql.store import SqlStore
from ksana.stores.sql.tables import TAKEN, Table
from ksana.stores.sql.tx import Tx
from ksana.stores.sqlite import SqliteDatabase

TABLES = {table.name: table for table in vars(tables).values() if isinstance(table, Table)}


async def test_every_table_begins_with_a_column_that_is_never_empty(tmp_path: Path) -> None:
    store = SqlStore(SqliteDatabase(tmp_path / "ksana.db"))
    await store.open()
    await store.close()
    connection = sqlite3.connect(tmp_path / "ksana.db")
    for name, table in TABLES.items():
        columns = {row[1]: row[3] or row[5] for row in connection.execute(f"PRAGMA table_info({name})")}
        assert columns[table.names[0]], f"{name}.{table.names[0]} may be empty"
    connection.close()


@pytest.mark.parametrize("count", [1, 2, 4, 5, 26, 499, 500, 501, 1003])
async def test_all_rows_are_added_however_many(tmp_path: Path, count: int) -> None:
    database = SqliteDatabase(tmp_path / "ksana.db")
    store = SqlStore(database)
    await store.open()
    rows = [(1, run_id, 0) for run_id in range(count)]

    async def add(tx: Tx) -> tuple[int, int]:
        return await tx.insert_new(TAKEN, rows), await tx.insert_new(TAKEN, rows)

    assert await database.write(add) == (count, 0)
    await store.close()
