"""One transaction on one MySQL or MariaDB connection."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import asyncmy.errors
import msgspec

from ksana.domain.claims import Claim
from ksana.stores.mysql.literals import pieces, written_out
from ksana.stores.sql.claiming import claim_by_priority
from ksana.stores.sql.compile import Compiled, compile_statement
from ksana.stores.sql.dialects import Dialect
from ksana.stores.sql.handing import handed_to, pass_on, stamp_chains
from ksana.stores.sql.rows import Row
from ksana.stores.sql.statements import (
    END_LOCKED_RUNS,
    HAND_OVER_LOCKED_STEPS,
    RUNS_AT_EPOCH,
    STEPS_TO_HAND_OVER,
    Statement,
)
from ksana.stores.sql.tables import LAST_ATTEMPTS, Table
from ksana.stores.sql.tx import Relay, Relayed, Told, UniqueViolation

_DUPLICATE = 1062
_EXISTS = frozenset({1050, 1060, 1061, _DUPLICATE})


def error_code(error: Exception) -> int:
    """The server's number for what went wrong, 0 if it gave none."""
    return error.args[0] if error.args and isinstance(error.args[0], int) else 0


class MysqlTx:
    """A transaction on one connection. A forgiving one takes it for done when something to be created is there."""

    def __init__(
        self, connection: Any, dialect: Dialect, compiled: dict[Statement, Compiled], forgiving: bool = False
    ) -> None:
        self._connection = connection
        self._dialect = dialect
        self._compiled = compiled
        self._forgiving = forgiving

    async def rows(self, statement: Statement, /, **values: Any) -> list[Any]:
        cursor = self._connection.cursor()
        await cursor.execute(self._ready(statement, values))
        return list(await cursor.fetchall())

    async def run(self, statement: Statement, /, **values: Any) -> int:
        try:
            return int(await self._connection.query(self._ready(statement, values)))
        except asyncmy.errors.MySQLError as error:
            # A schema change commits by itself here, so a migration cut short finds its own first steps done.
            if self._forgiving and error_code(error) in _EXISTS:
                return 0
            raise

    def _ready(self, statement: Statement, values: dict[str, Any]) -> bytes:
        compiled = self._compiled.get(statement)
        if compiled is None:
            compiled = self._compiled[statement] = compile_statement(statement, self._dialect)
        return written_out(compiled, values)

    async def insert(self, table: Table, rows: Sequence[tuple[Any, ...]]) -> None:
        for piece in pieces(rows):
            await self._insert(table, piece)

    async def insert_new(self, table: Table, rows: Sequence[tuple[Any, ...]]) -> int:
        return sum([await self._insert_new(table, piece) for piece in pieces(rows)])

    async def _insert_new(self, table: Table, rows: list[bytes]) -> int:
        # The server's own words for this hide other errors or cannot count. A collision is rare: then row by row.
        try:
            await self._insert(table, rows)
        except UniqueViolation:
            return 0 if len(rows) == 1 else sum([await self._insert_new(table, [row]) for row in rows])
        return len(rows)

    async def update(self, table: Table, rows: Sequence[tuple[Any, ...]]) -> None:
        # The rows are there and locked, so this insert always turns into the update; no bulk update is faster here.
        changes = ", ".join(f"{name} = VALUES({name})" for name in table.names[1:])
        for piece in pieces(rows):
            await self._insert(table, piece, f" ON DUPLICATE KEY UPDATE {changes}".encode())

    async def _insert(self, table: Table, rows: list[bytes], ending: bytes = b"") -> None:
        head = f"INSERT INTO {table.name} ({', '.join(table.names)}) VALUES "
        try:
            await self._connection.query(head.encode() + b",".join(rows) + ending)
        except asyncmy.errors.IntegrityError as error:
            if error_code(error) != _DUPLICATE:
                raise
            raise UniqueViolation(str(error)) from error

    async def swap(self, change: Statement, /, ids: Sequence[int], epoch: int, **values: Any) -> list[int]:
        # An update here does not say which rows it changed, so they are locked and looked at first.
        won = await self._at_epoch(ids, epoch)
        if won:
            await self.run(change, ids=won, epoch=epoch, **values)
        return won

    async def claim(self, claim: Claim) -> list[Row]:
        return await claim_by_priority(self, claim)

    async def hand_over(self, run_ids: Sequence[int], due_at: int, claim: Claim) -> list[Row]:
        values = handed_to(claim, due_at)
        rows = await self.rows(STEPS_TO_HAND_OVER, ids=run_ids, **values)
        if rows:
            await self.run(HAND_OVER_LOCKED_STEPS, ids=[row[0] for row in rows], **values)
        return rows

    async def pass_on(self, relay: Relay) -> Relayed | None:
        return await pass_on(self, relay)

    async def stamp(self, run_ids: Sequence[int], stamp: int) -> list[tuple[Any, ...]]:
        return await stamp_chains(self, run_ids, stamp)

    async def end(self, told: Told, epoch: int, **values: Any) -> Collection[int]:
        won = await self._at_epoch(list(told), epoch)
        ending = self._ready(END_LOCKED_RUNS, {"epoch": epoch, **values})
        for piece in pieces([(run_id, msgspec.json.encode(told[run_id]).decode()) for run_id in won]):
            # The rows are there and locked, as in `update`.
            await self._insert(LAST_ATTEMPTS, piece, ending)
        return won

    async def _at_epoch(self, ids: Sequence[int], epoch: int) -> list[int]:
        return [row[0] for row in await self.rows(RUNS_AT_EPOCH, ids=ids, epoch=epoch)]
