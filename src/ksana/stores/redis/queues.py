"""How the queues stand that are pulled from: what waits is counted by its sets, the rest by looking at it."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from typing import Any

from ksana.domain.items import KIND, shown_queue
from ksana.domain.policies import Priority
from ksana.domain.queries import ErrorGroup, QueueCounts
from ksana.domain.runs import Run
from ksana.domain.states import State
from ksana.domain.times import from_micros, to_micros
from ksana.stores.dead_letters import by_error
from ksana.stores.redis.codes import FAMILIES, STATES
from ksana.stores.redis.link import Link
from ksana.stores.redis.scripts import LIST_IDS
from ksana.stores.redis.search import range_args, surfaces, values_of
from ksana.stores.redis.values import run_from_value


async def queue_counts(link: Link, now: datetime) -> list[QueueCounts]:
    held = Counter(run.queue for run in await _items(link, State.RUNNING))
    dead = Counter(run.queue for run in await _items(link, State.DEAD_LETTER))
    names = {name.decode() for name in await link.ask("SMEMBERS", link.key("queues"))}
    pulled = {name for name in names if shown_queue(name) != name}
    found = [
        QueueCounts(queue=queue, **await _ready(link, queue, now), running=held[queue], dead_letters=dead[queue])
        for queue in sorted(pulled | held.keys() | dead.keys())
    ]
    return [one for one in found if one.queued or one.running or one.dead_letters]


async def _ready(link: Link, queue: str, now: datetime) -> dict[str, Any]:
    keys = [link.key(f"ready:{priority.value}:{queue}") for priority in Priority]
    until = to_micros(now)
    oldest: list[int] = []
    for key in keys:
        first = await link.ask("ZRANGEBYSCORE", key, "-inf", until, "WITHSCORES", "LIMIT", 0, 1)
        oldest += [int(float(score)) for score in first[1:2]]
    return {
        "queued": sum([await link.ask("ZCARD", key) for key in keys]),
        "due": sum([await link.ask("ZCOUNT", key, "-inf", until) for key in keys]),
        "oldest_due_at": from_micros(min(oldest)) if oldest else None,
    }


async def dead_by_error(link: Link, queue: str | None, limit: int) -> list[ErrorGroup]:
    return by_error((run for run in await _items(link, State.DEAD_LETTER) if queue in (None, run.queue)), limit)


async def _items(link: Link, state: State) -> list[Run]:
    """The items in this state, without what they carry."""
    of = await surfaces(link)
    sets = [(f"state:{STATES[state]}{family}{surface}", "-inf", "+inf") for family in FAMILIES for surface in of]
    ids = await link.run(LIST_IDS, *range_args(sets))
    runs = [run_from_value(value, None) for value in await values_of(link, "run", ids)]
    return [run for run in runs if run.kind == KIND]
