"""Raw limits: the least a store or an HTTP client can be asked to do, in loops with no scheduler around them.

python bench/limits.py sqlite|postgres|mysql URL COUNT      claim 500, finish 500, in a table of their own
python bench/limits.py client SINK COUNT                    the HTTP client alone, 64 calls at once
"""

from __future__ import annotations

import asyncio
import gc
import json
import sqlite3
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import unquote, urlsplit

import asyncmy
import asyncpg
import uvloop
from pyreqwest.client import ClientBuilder

BATCH = 500
CONNECTIONS = 4
CONCURRENCY = 64
BODY = '{"event":"order.received","payload":{"order_id":12345}}'

_SQLITE_TABLE = """
    CREATE TABLE work (id INTEGER PRIMARY KEY, queue TEXT, state INT, due_at REAL, payload TEXT, attempt INT DEFAULT 0);
    CREATE INDEX work_ready ON work (queue, due_at, id) WHERE state = 0
"""
_SQLITE_CLAIM = """
    UPDATE work SET state = 1, attempt = attempt + 1 WHERE id IN
    (SELECT id FROM work WHERE queue = 'q' AND state = 0 AND due_at <= 2 ORDER BY due_at, id LIMIT ?)
    RETURNING id, payload
"""


def sqlite(url: str, count: int) -> float:
    connection = sqlite3.connect(url.removeprefix("sqlite://"), isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    connection.executescript(_SQLITE_TABLE)
    connection.execute("BEGIN")
    rows = (("q", 0, 1.0, "{}") for _ in range(count))
    connection.executemany("INSERT INTO work (queue, state, due_at, payload) VALUES (?, ?, ?, ?)", rows)
    connection.execute("COMMIT")
    began = time.perf_counter()
    while claimed := connection.execute(_SQLITE_CLAIM, (BATCH,)).fetchall():
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany("UPDATE work SET state = 2 WHERE id = ?", [row[:1] for row in claimed])
        connection.execute("COMMIT")
    seconds = time.perf_counter() - began
    [(finished,)] = connection.execute("SELECT COUNT(*) FROM work WHERE state = 2")
    assert finished == count
    connection.close()
    return count / seconds


_POSTGRES_TABLE = """
    CREATE TABLE work (id bigserial PRIMARY KEY, queue text, state int, due_at timestamptz DEFAULT now(),
        payload jsonb, attempt int DEFAULT 0);
    CREATE INDEX work_ready ON work (queue, due_at, id) WHERE state = 0
"""
_POSTGRES_CLAIM = """
    UPDATE work SET state = 1, attempt = attempt + 1 WHERE id = ANY (ARRAY
    (SELECT id FROM work WHERE queue = 'q' AND state = 0 AND due_at <= now() ORDER BY due_at, id LIMIT $1
     FOR UPDATE SKIP LOCKED)) RETURNING id, payload
"""


async def postgres(url: str, count: int) -> float:
    connections = [await asyncpg.connect(url) for _ in range(CONNECTIONS)]
    first = connections[0]
    await first.execute(_POSTGRES_TABLE)
    await first.execute(
        "INSERT INTO work (queue, state, payload) SELECT 'q', 0, '{}' FROM generate_series(1, $1)", count
    )
    await first.execute("VACUUM ANALYZE work")

    async def drain(connection: Any) -> None:
        claim = await connection.prepare(_POSTGRES_CLAIM)
        finish = await connection.prepare("UPDATE work SET state = 2 WHERE id = ANY ($1::bigint[])")
        while claimed := await claim.fetch(BATCH):
            await finish.fetch([row[0] for row in claimed])

    began = time.perf_counter()
    await asyncio.gather(*map(drain, connections))
    seconds = time.perf_counter() - began
    assert await first.fetchval("SELECT COUNT(*) FROM work WHERE state = 2") == count
    for connection in connections:
        await connection.close()
    return count / seconds


_MYSQL_TABLE = """
    CREATE TABLE work (id bigint AUTO_INCREMENT PRIMARY KEY, queue varchar(32), state int,
        due_at datetime(6) DEFAULT now(6), payload text, attempt int DEFAULT 0,
        KEY work_ready (queue, state, due_at, id)) ENGINE = InnoDB
"""
_MYSQL_DUE = """
    SELECT id, payload FROM work WHERE queue = 'q' AND state = 0 AND due_at <= now(6) ORDER BY due_at, id LIMIT %s
    FOR UPDATE SKIP LOCKED
"""
_MYSQL_ROWS = 1000


async def mysql(url: str, count: int) -> float:
    parts = urlsplit(url)
    connections = [
        await asyncmy.connect(
            host=parts.hostname or "127.0.0.1",
            port=parts.port or 3306,
            user=unquote(parts.username or "root"),
            password=unquote(parts.password or ""),
            database=parts.path.strip("/"),
            autocommit=True,
        )
        for _ in range(CONNECTIONS)
    ]
    cursor = connections[0].cursor()
    await cursor.execute(_MYSQL_TABLE)
    for start in range(0, count, _MYSQL_ROWS):
        rows = ", ".join(["('q', 0, '{}')"] * min(_MYSQL_ROWS, count - start))
        await cursor.execute(f"INSERT INTO work (queue, state, payload) VALUES {rows}")
    await cursor.execute("ANALYZE TABLE work")
    await cursor.fetchall()

    async def drain(connection: Any) -> None:
        cursor = connection.cursor()
        while True:
            await cursor.execute("BEGIN")
            await cursor.execute(_MYSQL_DUE, (BATCH,))
            ids = ", ".join(str(row[0]) for row in await cursor.fetchall())
            if not ids:
                await cursor.execute("COMMIT")
                return
            await cursor.execute(f"UPDATE work SET state = 1, attempt = attempt + 1 WHERE id IN ({ids})")
            await cursor.execute("COMMIT")
            await cursor.execute(f"UPDATE work SET state = 2 WHERE id IN ({ids})")

    began = time.perf_counter()
    await asyncio.gather(*map(drain, connections))
    seconds = time.perf_counter() - began
    await cursor.execute("SELECT COUNT(*) FROM work WHERE state = 2")
    assert await cursor.fetchone() == (count,)
    for connection in connections:
        await connection.ensure_closed()
    return count / seconds


async def client(sink: str, count: int) -> float:
    async with ClientBuilder().no_proxy().build() as calls:

        async def caller(share: int) -> None:
            for _ in range(share):
                response = await calls.post(sink).body_text(BODY).build().send()
                assert response.status == 200

        async def call(share: int) -> float:
            began = time.perf_counter()
            await asyncio.gather(*(caller(share) for _ in range(CONCURRENCY)))
            return CONCURRENCY * share / (time.perf_counter() - began)

        # Connections are made before the clock starts: a worker that runs for weeks makes them once.
        await call(5)
        return await call(count // CONCURRENCY)


_LOOPS: dict[str, Callable[[str, int], Awaitable[float]]] = {"postgres": postgres, "mysql": mysql, "client": client}


async def _run(which: str, where: str, count: int) -> float:
    return await _LOOPS[which](where, count)


def main() -> None:
    which, where, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
    # A limit pays for nothing that it could do without.
    gc.disable()
    rate = sqlite(where, count) if which == "sqlite" else uvloop.run(_run(which, where, count))
    print(json.dumps({"rate": rate}))


if __name__ == "__main__":
    main()
