"""Forgetting and summing up, in steps small enough that nobody waits for them."""

from __future__ import annotations

from datetime import datetime, timedelta

from ksana.domain.queries import Minute
from ksana.domain.retention import Retention
from ksana.domain.states import FINAL, State
from ksana.domain.times import to_micros
from ksana.stores.redis.codes import FAMILIES, STATES
from ksana.stores.redis.link import Link
from ksana.stores.redis.scripts import GET_MINUTES, PRUNE_REST, PRUNE_RUNS, ROLL_UP
from ksana.stores.redis.search import surfaces
from ksana.stores.redis.shelves import minute_from

_MINUTE = timedelta(minutes=1)
_STEP = 60 * _MINUTE
_TICK = timedelta(microseconds=1)

# Dead letters wait for a person; they are never forgotten.
_PRUNABLE = sorted(FINAL - {State.DEAD_LETTER})


async def prune(link: Link, retention: Retention) -> int:
    gone = 0
    for surface in await surfaces(link):
        for state in _PRUNABLE:
            # A child goes with its parent, never before.
            group = f"{STATES[state]}{FAMILIES[0]}{surface}"
            gone += await _prune_group(link, group, retention, retention.limit - gone)
    before, now = to_micros(retention.before), to_micros(retention.now)
    went: int = await link.run(PRUNE_REST, before, now, retention.limit)
    return max(gone, went)


async def _prune_group(link: Link, group: str, retention: Retention, limit: int) -> int:
    """Forget at most `limit` runs of a group, passing over those that are kept."""
    gone = kept = 0
    is_all = limit <= 0
    while not is_all and gone < limit:
        step = (group, kept, to_micros(retention.before), retention.keep_last, limit - gone)
        went, stayed, is_all = await link.run(PRUNE_RUNS, *step)
        gone += went
        kept += stayed
    return gone


async def roll_up(link: Link, until: datetime) -> int:
    count: int = await link.run(ROLL_UP, to_micros(_minute(until)), _STEP // _TICK)
    return count


async def minutes(link: Link, since: datetime, until: datetime) -> list[Minute]:
    start, end = _minute(since), _minute(until + _MINUTE - _TICK)
    reply = await link.run(GET_MINUTES, to_micros(start), to_micros(end))
    found = [minute_from(key, value) for key, value in zip(reply[::2], reply[1::2], strict=True)]
    return sorted(found, key=lambda minute: (minute.minute_at, minute.kind, minute.state))


def _minute(instant: datetime) -> datetime:
    return instant.replace(second=0, microsecond=0)
