from typing import Any
from urllib.parse import urlsplit

import asyncmy
import asyncpg
import pytest
import redis.asyncio

from tests.services.databases import Databases, FreshDatabase, SharedDatabase
from tests.services.loop import LoopThread
from tests.services.mysql import MySql
from tests.services.names import PREFIX
from tests.services.postgres import Postgres
from tests.services.service import SqlService

STORES = ("postgres", "mysql")
SCHEMA = (
    "CREATE TABLE parent (id INTEGER PRIMARY KEY)",
    "CREATE TABLE child (id INTEGER PRIMARY KEY, parent INTEGER, FOREIGN KEY (parent) REFERENCES parent (id))",
    "CREATE TABLE migrations (version INTEGER PRIMARY KEY)",
    "INSERT INTO migrations VALUES (1)",
)
ROWS = ("INSERT INTO parent VALUES (1)", "INSERT INTO child VALUES (1, 1)")


async def connect(url: str) -> Any:
    if url.startswith("postgresql:"):
        return await asyncpg.connect(url)
    parts = urlsplit(url)
    return await asyncmy.connect(
        host=parts.hostname,
        port=parts.port,
        user=parts.username,
        password=parts.password or "",
        database=parts.path.strip("/"),
        autocommit=True,
    )


async def execute(url: str, *statements: str) -> None:
    connection = await connect(url)
    if url.startswith("postgresql:"):
        for statement in statements:
            await connection.execute(statement)
        await connection.close()
        return
    async with connection.cursor() as cursor:
        for statement in statements:
            await cursor.execute(statement)
    await connection.ensure_closed()


@pytest.fixture(params=STORES)
def service(request: pytest.FixtureRequest) -> SqlService:
    request.getfixturevalue(f"{request.param}_url")
    return Postgres() if request.param == "postgres" else MySql()


@pytest.fixture
def databases(request: pytest.FixtureRequest, service: SqlService) -> Databases:
    databases: Databases = request.getfixturevalue(f"{service.store}_databases")
    return databases


@pytest.fixture
def fresh(request: pytest.FixtureRequest, service: SqlService) -> FreshDatabase:
    fresh: FreshDatabase = request.getfixturevalue(f"fresh_{service.store}_database")
    return fresh


async def migrate(url: str) -> None:
    await execute(url, *SCHEMA)


async def filled_tables(service: SqlService, url: str) -> list[str]:
    visit = await service.visit(url)
    tables = await visit.filled_tables()
    await visit.close()
    return tables


async def test_a_fresh_database_is_empty_and_nobody_elses(service: SqlService, fresh: FreshDatabase) -> None:
    one, other = fresh(), fresh()
    assert one != other
    await execute(one, *SCHEMA, *ROWS)
    assert await filled_tables(service, other) == []


async def test_an_emptied_database_keeps_what_the_migration_left(
    service: SqlService, fresh: FreshDatabase, service_loop: LoopThread
) -> None:
    shared = SharedDatabase(service, fresh(), service_loop)
    url = shared.emptied(migrate)
    await execute(url, *ROWS)
    assert shared.emptied(migrate) == url
    shared.close()
    assert [name.strip("`").removeprefix("public.") for name in await filled_tables(service, url)] == ["migrations"]


async def test_a_dropped_database_is_gone_though_somebody_is_connected(
    service: SqlService, databases: Databases, request: pytest.FixtureRequest
) -> None:
    url = databases.fresh()
    name = url.rpartition("/")[2]
    server_url: str = request.getfixturevalue(f"{service.store}_url")
    assert name.startswith(PREFIX)
    connection = await connect(url)
    assert name not in await service.leftovers(server_url, in_use_too=False)
    assert name in await service.leftovers(server_url, in_use_too=True)
    databases.drop(url)
    assert name not in await service.leftovers(server_url, in_use_too=True)
    close = connection.terminate if service.store == "postgres" else connection.close
    close()


async def test_a_redis_prefix_starts_out_unused(redis_url: str, fresh_redis_prefix: str) -> None:
    client = redis.asyncio.from_url(redis_url, decode_responses=True)
    assert [key async for key in client.scan_iter(match=f"{fresh_redis_prefix}*")] == []
    await client.set(f"{fresh_redis_prefix}key", "value")
    await client.aclose()
