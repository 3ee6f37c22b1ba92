"""Adding, changing and firing jobs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from ksana.domain.changes import CursorMoved, JobChange
from ksana.domain.errors import AlreadyExists, NotFound, VersionConflict
from ksana.domain.idempotency import IdempotencyRecord, IdempotencyReplay
from ksana.domain.jobs import Job
from ksana.domain.moves import Move, advance
from ksana.domain.runs import Run
from ksana.domain.states import Event
from ksana.domain.times import to_micros
from ksana.stores.redis.catalog import Catalog
from ksana.stores.redis.codes import REASONS, STATES
from ksana.stores.redis.families import Families, Follow
from ksana.stores.redis.job_values import job_from_value, job_to_value, resume_arg
from ksana.stores.redis.link import Link
from ksana.stores.redis.scripts import ADD_JOBS, ADD_RUN, CHANGE_JOBS, LOOK_AT_JOB
from ksana.stores.redis.shelves import answer_args, decode_answer, gap_args
from ksana.stores.redis.values import fitting, packed_instant, run_to_value, runs_from_reply

_ROUNDS = 10
"""How often due jobs are looked at again because others have moved them on meanwhile."""


async def add_jobs(link: Link, jobs: Sequence[Job], record: IdempotencyRecord | None) -> None:
    with fitting():
        args = [*answer_args(record), len(jobs)]
        for job in jobs:
            args += (job.id, job_to_value(job), resume_arg(job))
    _refuse(await link.run(ADD_JOBS, *args))


def _refuse(reply: list[Any]) -> list[Any]:
    """What a script answered, or the error for what stands in the way of it."""
    match reply[0]:
        case b"answered":
            raise IdempotencyReplay(decode_answer(reply[1]))
        case b"id":
            raise AlreadyExists(f"there is a job {reply[1].decode()} already")
        case b"ref":
            raise AlreadyExists(f"{reply[1].decode()} already exists; choose another")
        case b"absent":
            raise NotFound(f"there is no job {reply[1].decode()}")
        case b"version":
            id, is_at, wanted = (part.decode() for part in reply[1:])
            raise VersionConflict(f"job {id} is at version {is_at}, not {wanted}; read it again and repeat the change")
        case b"cursor":
            raise CursorMoved(f"job {reply[1].decode()} has fired")
        case _:
            return reply


async def change_jobs(link: Link, catalog: Catalog, families: Families, changes: Sequence[JobChange]) -> list[Run]:
    asked: list[Any] = [len(changes)]
    with fitting():
        for change in changes:
            asked += _change_args(change)
    leaving: list[Run] = []
    while True:
        moves = [_canceled(run, changes) for run in leaving]
        follow = Follow(link, catalog, families, moves)
        await follow.work_out(move.run for move in moves)
        expected = [part for run in leaving for part in (run.id, run.epoch)]
        args = [*follow.stamps_args(), len(leaving), *expected, *follow.steps_args()]
        answer = _refuse(await link.run(CHANGE_JOBS, *asked, *args))
        if answer[0] == b"family":
            # Children of others are canceled by it: what that means for their families comes along.
            leaving = runs_from_reply(answer[1])
            continue
        canceled, stamps = answer[1:]
        follow.keep(stamps)
        return runs_from_reply(canceled)


def _canceled(run: Run, changes: Sequence[JobChange]) -> Move:
    [change] = [change for change in changes if change.job.id == run.job_id][:1]
    return Move(run.epoch, advance(run, Event.CANCEL, change.job.updated_at, reason=change.reason))


def _change_args(change: JobChange) -> list[Any]:
    cursor = change.cursor_was
    return [
        change.job.id,
        change.version,
        job_to_value(change.job),
        resume_arg(change.job),
        b"" if cursor is msgspec.UNSET else packed_instant(cursor),
        int(change.moves_cursor),
        "".join(STATES[state] for state in change.cancels),
        REASONS[change.reason],
        to_micros(change.job.updated_at),
        *([0] if change.gap is None else [1, *gap_args(change.gap)]),
    ]


async def add_run(
    link: Link,
    job_id: int,
    make: Callable[[Job, int], Run],
    record: Callable[[Run], IdempotencyRecord] | None,
) -> Run:
    while True:
        value, active = await link.run(LOOK_AT_JOB, job_id)
        if value is None:
            raise NotFound(f"there is no job {job_id}")
        job = job_from_value(value)
        run = make(job, active)
        # How many runs a job without a limit has decides nothing, and changes all the time.
        must_be = -1 if job.overlap.limit is None else active
        with fitting():
            args = [job_id, value[:8], must_be, *answer_args(record(run) if record else None)]
            args += (run_to_value(run), run.input or b"")
        reply = await link.run(ADD_RUN, *args)
        if reply[0] == b"again":
            continue
        if reply[0] == b"taken":
            raise AlreadyExists(f"there is a run {run.id}, or one of its slot, already")
        _refuse(reply)
        return run
