"""Pages of what a search finds: how many there are in all, and the rows to show."""

from __future__ import annotations

from typing import Any, Protocol

from ksana.stores.sql.statements import Statement
from ksana.stores.sql.tx import Tx
from ksana.stores.sql.where import Where


class Stretch(Protocol):
    """Which stretch of a list is wanted."""

    @property
    def limit(self) -> int: ...

    @property
    def offset(self) -> int: ...


async def count(tx: Tx, source: str, where: Where) -> int:
    [(total,)] = await tx.rows(Statement(f"SELECT COUNT(*) {source}{where}"), **where.values)
    return int(total)


async def page(tx: Tx, columns: str, source: str, where: Where, order: str, asked: Stretch) -> list[tuple[Any, ...]]:
    statement = Statement(f"SELECT {columns} {source}{where} ORDER BY {order} LIMIT :limit OFFSET :offset")
    return await tx.rows(statement, **where.values, limit=asked.limit, offset=asked.offset)
