"""From due cursors to runs: looked at, decided here, and fired as far as the jobs are still as they were."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, NamedTuple

import msgspec

from ksana.domain.claims import Claimed, Fired
from ksana.domain.fires import DueJob, Fire
from ksana.domain.foresight import Births, Foreseen, Prospect, Sight, born, in_order
from ksana.domain.jobs import Job
from ksana.domain.runs import Run
from ksana.domain.times import from_micros, to_micros
from ksana.stores.redis.catalog import Catalog
from ksana.stores.redis.job_values import judged_from_value
from ksana.stores.redis.link import Link
from ksana.stores.redis.scripts import BURSTS, DUE_JOBS, FIRE, JOBS_DUE_AT, JUDGED_JOBS
from ksana.stores.redis.shelves import gap_args
from ksana.stores.redis.values import fitting, packed_instant, run_to_value

_ROUNDS = 10
"""How often due jobs are looked at again because others have moved them on meanwhile."""


class _Judged(NamedTuple):
    """A job that comes due, with what it was judged by: it is fired only if that is still so."""

    due: DueJob
    head: bytes


async def fire_due(
    link: Link, catalog: Catalog, now: datetime, limit: int, decide: Callable[[list[DueJob]], list[Fire]]
) -> Fired:
    """Look at due jobs, decide, and fire those that are still as they were. If none is, others are at work on the same
    ones: there may be more behind them."""
    for _ in range(_ROUNDS):
        judged = await _judged(catalog, await link.run(DUE_JOBS, to_micros(now), limit))
        if not judged:
            break
        fires = decide([one.due for one in judged.values()])
        if not fires:
            return Fired([], [], len(judged))
        if done := await _fire(link, judged, fires):
            return _told(judged, done, len(judged))
    return Fired([], [], 0)


async def bursts(link: Link, after: datetime, until: datetime, least: int) -> list[tuple[datetime, int]]:
    reply = await link.run(BURSTS, to_micros(after), to_micros(until), least)
    return [(from_micros(int(float(at))), count) for at, count in zip(reply[::2], reply[1::2], strict=True)]


async def look_ahead(
    link: Link,
    catalog: Catalog,
    at: datetime,
    after_id: int,
    limit: int,
    foresee: Callable[[DueJob], Prospect | None],
) -> Sight:
    judged = await _judged(catalog, await link.run(JOBS_DUE_AT, to_micros(at), after_id, limit))
    prospects = [prospect for one in judged.values() if (prospect := foresee(one.due)) is not None]
    return Sight(Foreseen(in_order(prospects)), list(judged)[-1] if len(judged) == limit else None)


async def fire_foreseen(link: Link, catalog: Catalog, foreseen: Foreseen, births: Births) -> Fired:
    ids = [prospect.job.id for prospect in foreseen.prospects]
    judged = await _judged(catalog, await link.run(JUDGED_JOBS, len(ids), *ids))
    fires = [
        Fire(prospect.job.id, [run], [], prospect.next_slot_at, prospect.next_fire_at)
        for prospect, run in zip(foreseen.prospects, born(foreseen.prospects, births), strict=True)
        if prospect.job.id in judged and prospect.stands(judged[prospect.job.id].due)
    ]
    done = await _fire(link, judged, fires) if fires else []
    return _told(judged, done, len(done))


async def _judged(catalog: Catalog, reply: list[Any]) -> dict[int, _Judged]:
    heads = {int(id): head for id, head in zip(reply[::3], reply[1::3], strict=True)}
    active = dict(zip(heads, reply[2::3], strict=True))
    planned = {job_id: found for job_id, head in heads.items() if (found := judged_from_value(head)) is not None}
    jobs = await catalog.jobs((job_id, version) for job_id, (version, _, _) in planned.items())
    return {
        job_id: _Judged(
            DueJob(_at_cursor(jobs[job_id], slot_at, fire_at), slot_at, fire_at, active[job_id]), heads[job_id]
        )
        for job_id, (_, slot_at, fire_at) in planned.items()
    }


async def _fire(link: Link, judged: dict[int, _Judged], fires: list[Fire]) -> list[tuple[Fire, bytes]]:
    """Fire what is still as it was judged; answer that, with which of its runs were added."""
    with fitting():
        args: list[Any] = [len(fires)]
        for fire in fires:
            one = judged[fire.job_id]
            args += _fire_args(fire, one.head, one.due.active)
    answers: list[bytes] = await link.run(FIRE, *args)
    return [(fire, answer) for fire, answer in zip(fires, answers, strict=True) if answer != b"again"]


def _told(judged: dict[int, _Judged], done: list[tuple[Fire, bytes]], looked_at: int) -> Fired:
    return Fired(
        [Claimed(run, judged[fire.job_id].due.job) for fire, answer in done for run in _added(fire, answer)],
        [gap for fire, _ in done for gap in fire.gaps],
        looked_at,
    )


def _added(fire: Fire, answer: bytes) -> list[Run]:
    marks = answer.removeprefix(b"done").decode()
    return [run for run, mark in zip(fire.runs, marks, strict=True) if mark == "1"]


def _at_cursor(job: Job, slot_at: datetime, fire_at: datetime) -> Job:
    if job.next_slot_at == slot_at and job.next_fire_at == fire_at:
        return job
    return msgspec.structs.replace(job, next_slot_at=slot_at, next_fire_at=fire_at)


def _fire_args(fire: Fire, head: bytes, active: int) -> list[Any]:
    cursor = packed_instant(fire.next_slot_at) + packed_instant(fire.next_fire_at)
    args: list[Any] = [fire.job_id, head, active, cursor, len(fire.runs), len(fire.gaps)]
    for run in fire.runs:
        args += (run_to_value(run), run.input or b"")
    for gap in fire.gaps:
        args += gap_args(gap)
    return args
