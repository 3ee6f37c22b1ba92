"""Changes that can be taken back: a step that fails leaves nothing, and a group is tried before it is written."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeVar

from ksana.domain.archive import Standing
from ksana.stores.json.table import Table
from ksana.stores.json.tables import Tables

K = TypeVar("K")
V = TypeVar("V")


class Change(NamedTuple):
    """What became of one key: the value it has now; None if it is gone."""

    table: Table[Any, Any]
    key: Any
    value: Any


class Tx:
    """The tables, and how to get back to what they were."""

    def __init__(self, tables: Tables) -> None:
        self.tables = tables
        self._before: list[tuple[Table[Any, Any], Any, Any]] = []

    def put(self, table: Table[K, V], key: K, value: V) -> None:
        self._before.append((table, key, table.get(key)))
        table.set(key, value)

    def drop(self, table: Table[K, V], key: K) -> None:
        old = table.get(key)
        if old is not None:
            self._before.append((table, key, old))
            table.set(key, None)

    def stand(self, standing: Standing) -> None:
        self.put(self.tables.standing, "", standing)

    @property
    def mark(self) -> int:
        """A place to go back to."""
        return len(self._before)

    def undo(self, mark: int = 0) -> None:
        """Make the tables what they were at the mark."""
        while len(self._before) > mark:
            table, key, old = self._before.pop()
            table.set(key, old)

    def changes(self, mark: int = 0) -> list[Change]:
        """What has changed since the mark, each key once."""
        keys = {(id(table), key): (table, key) for table, key, _ in self._before[mark:]}
        return [Change(table, key, table.get(key)) for table, key in keys.values()]
