"""The least a chain of one node after the other can cost: one durable commit per node, which ends a node, lets the next
one in and claims it, in a loop with no scheduler around it.

python bench/chain_limits.py sqlite|postgres|mysql URL COUNT
"""

from __future__ import annotations

import json
import sqlite3
import sys
import time
from typing import Any
from urllib.parse import unquote, urlsplit

import asyncmy
import asyncpg
import uvloop

# States: -1 waits, 0 is due, 1 is claimed, 2 is done.
_SQLITE = """
    CREATE TABLE work (id INTEGER PRIMARY KEY, queue TEXT, state INT, due_at REAL, payload TEXT, attempt INT DEFAULT 0);
    CREATE INDEX work_ready ON work (queue, due_at, id) WHERE state = 0
"""
_SQLITE_CLAIM = """
    UPDATE work SET state = 1, attempt = attempt + 1 WHERE id IN
    (SELECT id FROM work WHERE queue = 'q' AND state = 0 AND due_at <= 2 ORDER BY due_at, id LIMIT 500)
    RETURNING id, payload
"""


def sqlite(url: str, count: int) -> float:
    connection = sqlite3.connect(url.removeprefix("sqlite://"), isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    connection.executescript(_SQLITE)
    connection.execute("BEGIN")
    rows = (("q", -1, 1.0, "{}") for _ in range(count))
    connection.executemany("INSERT INTO work (queue, state, due_at, payload) VALUES (?, ?, ?, ?)", rows)
    connection.execute("UPDATE work SET state = 1 WHERE id = 1")
    connection.execute("COMMIT")
    began = time.perf_counter()
    node = 1
    while node:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("UPDATE work SET state = 2 WHERE id = ? AND state = 1", (node,))
        connection.execute("UPDATE work SET state = 0 WHERE id = ? AND state = -1", (node + 1,))
        claimed = connection.execute(_SQLITE_CLAIM).fetchall()
        connection.execute("COMMIT")
        node = claimed[0][0] if claimed else 0
    seconds = time.perf_counter() - began
    [(finished,)] = connection.execute("SELECT COUNT(*) FROM work WHERE state = 2")
    assert finished == count
    connection.close()
    return count / seconds


_POSTGRES = """
    CREATE TABLE work (id bigint PRIMARY KEY, queue text, state int, due_at timestamptz DEFAULT now(),
        payload jsonb, attempt int DEFAULT 0);
    CREATE INDEX work_ready ON work (queue, due_at, id) WHERE state = 0
"""
_POSTGRES_CLAIM = """
    UPDATE work SET state = 1, attempt = attempt + 1 WHERE id = ANY (ARRAY
    (SELECT id FROM work WHERE queue = 'q' AND state = 0 AND due_at <= now() ORDER BY due_at, id LIMIT 500
     FOR UPDATE SKIP LOCKED)) RETURNING id, payload
"""


async def postgres(url: str, count: int) -> float:
    connection = await asyncpg.connect(url)
    await connection.execute(_POSTGRES)
    await connection.execute(
        "INSERT INTO work (id, queue, state, payload) SELECT id, 'q', -1, '{}' FROM generate_series(1, $1) AS id", count
    )
    await connection.execute("UPDATE work SET state = 1 WHERE id = 1")
    await connection.execute("VACUUM ANALYZE work")
    finish = await connection.prepare("UPDATE work SET state = 2 WHERE id = $1 AND state = 1")
    admit = await connection.prepare("UPDATE work SET state = 0 WHERE id = $1 AND state = -1")
    claim = await connection.prepare(_POSTGRES_CLAIM)
    began = time.perf_counter()
    node = 1
    while node:
        async with connection.transaction():
            await finish.fetch(node)
            await admit.fetch(node + 1)
            claimed = await claim.fetch()
        node = claimed[0][0] if claimed else 0
    seconds = time.perf_counter() - began
    assert await connection.fetchval("SELECT COUNT(*) FROM work WHERE state = 2") == count
    await connection.close()
    return count / seconds


_MYSQL = """
    CREATE TABLE work (id bigint PRIMARY KEY, queue varchar(32), state int, due_at datetime(6) DEFAULT now(6),
        payload text, attempt int DEFAULT 0, KEY work_ready (queue, state, due_at, id)) ENGINE = InnoDB
"""
_MYSQL_DUE = """
    SELECT id, payload FROM work WHERE queue = 'q' AND state = 0 AND due_at <= now(6) ORDER BY due_at, id LIMIT 500
    FOR UPDATE SKIP LOCKED
"""


async def mysql(url: str, count: int) -> float:
    parts = urlsplit(url)
    connection = await asyncmy.connect(
        host=parts.hostname or "127.0.0.1",
        port=parts.port or 3306,
        user=unquote(parts.username or "root"),
        password=unquote(parts.password or ""),
        database=parts.path.strip("/"),
        autocommit=True,
    )
    cursor: Any = connection.cursor()
    await cursor.execute(_MYSQL)
    await cursor.executemany(
        "INSERT INTO work (id, queue, state, payload) VALUES (%s, 'q', -1, '{}')", [(id,) for id in range(1, count + 1)]
    )
    await cursor.execute("UPDATE work SET state = 1 WHERE id = 1")
    began = time.perf_counter()
    node = 1
    while node:
        await cursor.execute("BEGIN")
        await cursor.execute("UPDATE work SET state = 2 WHERE id = %s AND state = 1", (node,))
        await cursor.execute("UPDATE work SET state = 0 WHERE id = %s AND state = -1", (node + 1,))
        await cursor.execute(_MYSQL_DUE)
        claimed = await cursor.fetchall()
        node = claimed[0][0] if claimed else 0
        if node:
            await cursor.execute("UPDATE work SET state = 1, attempt = attempt + 1 WHERE id = %s", (node,))
        await cursor.execute("COMMIT")
    seconds = time.perf_counter() - began
    await cursor.execute("SELECT COUNT(*) FROM work WHERE state = 2")
    assert await cursor.fetchone() == (count,)
    await connection.ensure_closed()
    return count / seconds


def main() -> None:
    which, where, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
    if which == "sqlite":
        rate = sqlite(where, count)
    else:
        rate = uvloop.run(postgres(where, count) if which == "postgres" else mysql(where, count))
    print(json.dumps({"rate": rate}))


if __name__ == "__main__":
    main()
