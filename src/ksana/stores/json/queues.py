"""How the queues stand that are pulled from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import datetime

from ksana.domain.items import KIND
from ksana.domain.queries import ErrorGroup, QueueCounts
from ksana.domain.runs import Run
from ksana.domain.states import State
from ksana.stores.dead_letters import by_error
from ksana.stores.json.ordered import Ordered
from ksana.stores.json.tables import Tables


def queue_counts(tables: Tables, now: datetime) -> list[QueueCounts]:
    runs = tables.runs
    held = Counter(run.queue for run in _items(tables, runs.unfinished[State.RUNNING]))
    dead = Counter(run.queue for run in _dead(tables))
    ready: dict[str, list[Ordered[tuple[datetime, int]]]] = {}
    for queue, priority in runs.ready.groups():
        keys = runs.ready[queue, priority]
        if runs.rows[keys[0][1]].kind == KIND:
            ready.setdefault(queue, []).append(keys)
    return [
        _counted(queue, ready.get(queue, []), held[queue], dead[queue], now)
        for queue in sorted(ready.keys() | held.keys() | dead.keys())
    ]


def _counted(
    queue: str, ready: list[Ordered[tuple[datetime, int]]], held: int, dead: int, now: datetime
) -> QueueCounts:
    oldest = min((keys[0][0] for keys in ready), default=None)
    return QueueCounts(
        queue=queue,
        queued=sum(map(len, ready)),
        due=sum(keys.through(now) for keys in ready),
        oldest_due_at=oldest if oldest is not None and oldest <= now else None,
        running=held,
        dead_letters=dead,
    )


def dead_by_error(tables: Tables, queue: str | None, limit: int) -> list[ErrorGroup]:
    return by_error((run for run in _dead(tables) if queue in (None, run.queue)), limit)


def _dead(tables: Tables) -> Iterator[Run]:
    return _items(tables, (run_id for _, run_id in tables.runs.ended[State.DEAD_LETTER]))


def _items(tables: Tables, run_ids: Iterable[int]) -> Iterator[Run]:
    return (run for run in map(tables.runs.rows.__getitem__, run_ids) if run.kind == KIND)
