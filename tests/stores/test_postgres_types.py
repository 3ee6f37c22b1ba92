"""What PostgreSQL calls an array is asked once for a process, not once for each connection."""

from typing import Any

import asyncpg

from ksana.stores.postgres import _Connection
from tests.services.databases import FreshDatabase


async def _asked(url: str, *questions: tuple[Any, ...]) -> tuple[list[Any], int]:
    """What these give on a connection of their own, and how often it had to look types up."""
    connection = await asyncpg.connect(url, connection_class=_Connection)
    lookups = 0

    def count(record: Any) -> None:
        nonlocal lookups
        lookups += "typeinfo" in record.query

    connection.add_query_logger(count)
    try:
        return [await connection.fetchval(*question) for question in questions], lookups
    finally:
        await connection.close()


async def test_types_of_postgres_are_looked_up_by_one_connection(postgres_url: str) -> None:
    numbers = ("SELECT $1::bigint[]", [1, None, 2**62])
    names = ("SELECT $1::text[]", ["a", "刹那"])
    bodies = ("SELECT $1::bytea[]", [b"\x00\xff"])
    values = [[1, None, 2**62], ["a", "刹那"], [b"\x00\xff"]]
    first, _ = await _asked(postgres_url, numbers, names, bodies)
    again, lookups = await _asked(postgres_url, numbers, names, bodies)
    assert (first, again, lookups) == (values, values, 0)


async def test_types_of_somebody_else_are_looked_up_on_every_connection(fresh_postgres_database: FreshDatabase) -> None:
    # The same number may be another type in another database.
    for labels in ("'low', 'high'", "'high', 'higher'"):
        url = fresh_postgres_database()
        await _asked(url, (f"CREATE TYPE level AS ENUM ({labels})",))
        found, lookups = await _asked(url, ("SELECT ARRAY['high']::level[]",))
        assert (found, lookups) == ([["high"]], 1)
