"""Due items in the order in which they are handed out, page by page: each priority has its own order in the index, and
they are merged here."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection
from datetime import datetime
from typing import Any

from ksana.domain.items import Pull, pull_key
from ksana.domain.policies import Priority
from ksana.domain.runs import Run
from ksana.domain.times import to_micros
from ksana.stores.sql.claiming import BY_PRIORITY
from ksana.stores.sql.item_statements import (
    DUE_ITEMS,
    DUE_ITEMS_OF_TYPES,
    LATER_DUE_ITEMS,
    LATER_DUE_ITEMS_OF_TYPES,
    SAME_DUE_ITEMS,
    SAME_DUE_ITEMS_OF_TYPES,
)
from ksana.stores.sql.rows import Row
from ksana.stores.sql.run_rows import runs_from_rows
from ksana.stores.sql.statements import Statement
from ksana.stores.sql.tx import Tx

_PAGE = 200
_MOST_NAMED = 500
# A list in a statement has at least one member; no subject is called like this.
_NONE = [""]

_ANY = (DUE_ITEMS, SAME_DUE_ITEMS, LATER_DUE_ITEMS)
_OF_TYPES = (DUE_ITEMS_OF_TYPES, SAME_DUE_ITEMS_OF_TYPES, LATER_DUE_ITEMS_OF_TYPES)


class _Stream:
    """Items of one priority: those read and not yet shown, and the last that was read."""

    def __init__(self, priority: Priority) -> None:
        self.priority = priority
        self.waiting: deque[Run] = deque()
        self.last: Run | None = None
        self.is_over = False

    def take_all(self) -> list[Run]:
        runs = list(self.waiting)
        self.waiting.clear()
        return runs


class DueItems:
    """What a pull may hand out. Others that pull at the same time are shown other items."""

    def __init__(self, tx: Tx, pull: Pull) -> None:
        self._tx = tx
        self._pull = pull
        self._streams = [_Stream(priority) for priority in BY_PRIORITY]
        # Mostly all that is shown is handed out; whoever must pass over some is shown more at once.
        self._size = pull.limit
        self._full = _NONE
        self.is_queue_set = False
        """Whether something was set for the queue; known once an item was shown."""

    async def page(self, full: Collection[str] = ()) -> list[Run]:
        """The next items; none at the end. The first page has as many as are asked for, if there are so many. Of the
        subjects that are full there need not be any more."""
        self._full = sorted(full)[:_MOST_NAMED] or _NONE
        for stream in self._streams:
            if not stream.waiting and not stream.is_over:
                await self._read_on(stream)
        self._size = max(self._pull.limit, _PAGE)
        holders = [stream for stream in self._streams if stream.waiting]
        if len(holders) == 1:
            [only] = holders
            return only.take_all()
        # Behind the nearest end of those that go on, there may be items that have not been read yet.
        ends = [self._key(stream.waiting[-1]) for stream in self._streams if not stream.is_over]
        end = min(ends, default=None)
        page: list[Run] = []
        for stream in self._streams:
            while stream.waiting and (end is None or self._key(stream.waiting[0]) <= end):
                page.append(stream.waiting.popleft())
        page.sort(key=self._key)
        return page

    def _key(self, run: Run) -> tuple[datetime, int, int]:
        return pull_key(self._pull.order, run.due_at, run.priority, run.id)

    async def _read_on(self, stream: _Stream) -> None:
        due, same, later = _OF_TYPES if self._pull.types else _ANY
        if stream.last is None:
            rows = await self._rows(due, stream, self._size)
        else:
            rows = await self._rows(same, stream, self._size)
            if len(rows) < self._size:
                rows += await self._rows(later, stream, self._size - len(rows))
        stream.is_over = not rows or len(rows) < self._size
        stream.waiting.extend(runs_from_rows([row[:-1] for row in rows]))
        if rows:
            stream.last = stream.waiting[-1]
            self.is_queue_set = self.is_queue_set or bool(rows[0][-1])

    async def _rows(self, statement: Statement, stream: _Stream, limit: int) -> list[Row]:
        pull, last = self._pull, stream.last
        values: dict[str, Any] = {
            "queue": pull.queue,
            "priority": stream.priority.value,
            "now": to_micros(pull.now),
            "limit": limit,
        }
        if last is not None:
            values |= {"after_at": to_micros(last.due_at), "after_id": last.id, "full": self._full}
        if pull.types:
            values["types"] = list(pull.types)
        return list(await self._tx.rows(statement, **values))
