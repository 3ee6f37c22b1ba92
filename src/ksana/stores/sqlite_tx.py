"""Transactions on SQLite, in as few steps as can be: each step gives up the interpreter's lock."""

from __future__ import annotations

import sqlite3
from bisect import bisect_left
from collections.abc import Collection, Iterator, Sequence
from itertools import chain
from typing import Any

import msgspec

from ksana.domain.claims import Claim
from ksana.stores.sql.claiming import claim_from_highest
from ksana.stores.sql.compile import Compiled, compile_statement
from ksana.stores.sql.dialects import SQLITE
from ksana.stores.sql.ending import end
from ksana.stores.sql.handing import hand_over, pass_on, stamp_chains
from ksana.stores.sql.rows import Row
from ksana.stores.sql.statements import RUNS_AT_EPOCH, Statement
from ksana.stores.sql.tables import Table
from ksana.stores.sql.tx import Relay, Relayed, Told, UniqueViolation

# A few sizes only, so that the prepared statements for them stay at hand; the largest keeps below the limit of values.
_SIZES = (1, 4, 12, 25, 50, 100, 150, 200, 300, 400, 500)


class SqliteTx:
    """A transaction on one connection. Its coroutines never suspend, so a thread can run them to the end."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._execute = connection.execute
        self._compiled: dict[Statement, _Text] = {}
        self._packing: dict[Statement, Statement] = {}
        self._bulk: dict[tuple[Table, int, str], str] = {}

    async def rows(self, statement: Statement, /, **values: Any) -> list[tuple[Any, ...]]:
        if statement.selects is not None:
            return self._packed(statement, statement.selects, values)
        return self._execute(*self._ready(statement, values)).fetchall()

    def _packed(self, statement: Statement, table: Table, values: dict[str, Any]) -> list[tuple[Any, ...]]:
        """All rows in one step: every step gives up the interpreter's lock and may wait long to get it back."""
        packed = self._packing.get(statement)
        if packed is None:
            packed = self._packing[statement] = Statement(_pack(statement.text, table))
        [(text,)] = self._execute(*self._ready(packed, values)).fetchall()
        rows: list[Any] = _unpack(text)
        for place, (_, kind) in enumerate(table.columns):
            if kind == "bytes":
                for row in rows:
                    if (told := row[place]) is not None:
                        row[place] = bytes.fromhex(told)
        return rows

    async def run(self, statement: Statement, /, **values: Any) -> int:
        return self._execute(*self._ready(statement, values)).rowcount

    def _ready(self, statement: Statement, values: dict[str, Any]) -> tuple[str, list[Any]]:
        found = self._compiled.get(statement)
        if found is None:
            found = self._compiled[statement] = _Text(compile_statement(statement, SQLITE))
        return found.with_values(values)

    async def insert(self, table: Table, rows: Sequence[tuple[Any, ...]]) -> None:
        try:
            self._insert(table, rows, "")
        except sqlite3.IntegrityError as error:
            raise UniqueViolation(str(error)) from error

    async def insert_new(self, table: Table, rows: Sequence[tuple[Any, ...]]) -> int:
        return self._insert(table, rows, " ON CONFLICT DO NOTHING")

    def _insert(self, table: Table, rows: Sequence[tuple[Any, ...]], ending: str) -> int:
        """As few statements as can be: each gives up the interpreter's lock several times and may wait long to get it
        back. So what does not fill one is filled up with rows that are left out."""
        added, most = 0, _SIZES[-1]
        for start in range(0, len(rows), most):
            piece = rows[start : start + most]
            size = _SIZES[bisect_left(_SIZES, len(piece))]
            flat = list(chain.from_iterable(piece))
            flat += [None] * ((size - len(piece)) * len(table.names))
            added += self._execute(self._insert_text(table, size, ending), flat).rowcount
        return added

    def _insert_text(self, table: Table, size: int, ending: str) -> str:
        text = self._bulk.get((table, size, ending))
        if text is None:
            row = f"({', '.join('?' * len(table.names))})"
            # Every table begins with a column that is never empty.
            given = f"SELECT * FROM (VALUES {', '.join([row] * size)}) WHERE column1 IS NOT NULL"
            text = f"INSERT INTO {table.name} ({', '.join(table.names)}) {given}{ending}"
            self._bulk[table, size, ending] = text
        return text

    async def update(self, table: Table, rows: Sequence[tuple[Any, ...]]) -> None:
        try:
            if any(kind == "bytes" for _, kind in table.columns):
                self._connection.executemany(_update(table), [(*row[1:], row[0]) for row in rows])
            else:
                # Values that JSON can hold go in one step, as rows come out in one.
                self._execute(_update_packed(table), (_packed_text(rows),))
        except sqlite3.IntegrityError as error:
            raise UniqueViolation(str(error)) from error

    async def swap(self, change: Statement, /, ids: Sequence[int], epoch: int, **values: Any) -> list[int]:
        # Nobody else writes meanwhile. A change that tells which rows it found would take a step for each.
        won = [row[0] for row in await self.rows(RUNS_AT_EPOCH, ids=ids, epoch=epoch)]
        if won:
            await self.run(change, ids=won, epoch=epoch, **values)
        return won

    async def claim(self, claim: Claim) -> list[Row]:
        return await claim_from_highest(self, claim)

    async def hand_over(self, run_ids: Sequence[int], due_at: int, claim: Claim) -> list[Row]:
        return await hand_over(self, run_ids, due_at, claim)

    async def pass_on(self, relay: Relay) -> Relayed | None:
        return await pass_on(self, relay)

    async def stamp(self, run_ids: Sequence[int], stamp: int) -> list[tuple[Any, ...]]:
        return await stamp_chains(self, run_ids, stamp)

    async def end(self, told: Told, epoch: int, **values: Any) -> Collection[int]:
        return await end(self, told, epoch, **values)


class _Text:
    """A statement with its values. Lists travel as JSON, and lists of one as that one, which is found faster: so there
    are few texts of a statement, and they stay prepared."""

    def __init__(self, compiled: Compiled) -> None:
        self._compiled = compiled
        self._lists = [name for name, is_list in zip(compiled.names, compiled.lists, strict=True) if is_list]
        self._texts: dict[tuple[bool, ...], str] = {}
        self._plain = "" if self._lists else self._placed(iter(()))

    def with_values(self, values: dict[str, Any]) -> tuple[str, list[Any]]:
        if self._plain:
            return self._plain, [values[name] for name in self._compiled.names]
        ones = tuple([len(values[name]) == 1 for name in self._lists])
        text = self._texts.get(ones)
        if text is None:
            text = self._texts[ones] = self._placed(iter(ones))
        return text, [
            _listed(values[name]) if is_list else values[name]
            for name, is_list in zip(self._compiled.names, self._compiled.lists, strict=True)
        ]

    def _placed(self, ones: Iterator[bool]) -> str:
        def place(is_list: bool) -> str:
            if not is_list:
                return "?"
            return "IN (?)" if next(ones) else "IN (SELECT value FROM json_each(?))"

        places = [*map(place, self._compiled.lists), ""]
        return "".join(part + place for part, place in zip(self._compiled.parts, places, strict=True))


def _listed(values: Collection[Any]) -> Any:
    if len(values) == 1:
        [value] = values
        return value
    return _packed_text(values)


def _packed_text(value: Any) -> str:
    return _encode(value).decode()


_encode = msgspec.json.Encoder().encode
_unpack = msgspec.json.Decoder(list[list[Any]]).decode


def _pack(text: str, table: Table) -> str:
    """The query as one row with one value: a JSON array of its rows, in which bytes are told in hexadecimal."""
    values = [
        f"CASE WHEN {name} IS NOT NULL THEN hex({name}) END" if kind == "bytes" else name
        for name, kind in table.columns
    ]
    return f"SELECT json_group_array(json_array({', '.join(values)})) FROM ({text})"


def _update(table: Table) -> str:
    key, *others = table.names
    return f"UPDATE {table.name} SET {', '.join(f'{name} = ?' for name in others)} WHERE {key} = ?"


def _update_packed(table: Table) -> str:
    (key, _), *others = table.columns
    changes = ", ".join(f"{name} = json_extract(new.value, '$[{i}]')" for i, (name, _) in enumerate(others, 1))
    return f"UPDATE {table.name} SET {changes} FROM json_each(?) AS new WHERE {key} = json_extract(new.value, '$[0]')"
