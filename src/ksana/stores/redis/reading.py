"""Reading runs and jobs: by id, by token, the newest, the fire log, gauges."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime

from ksana.domain.callbacks import CallbackRecord, Progress
from ksana.domain.fire_log import line_of_gap, line_of_run
from ksana.domain.queries import Counts, FireRecord
from ksana.domain.runs import Attempt, LastAttempt, Run
from ksana.domain.states import State
from ksana.domain.times import from_micros, to_micros
from ksana.stores.redis.attempt_values import attempt_from_parts
from ksana.stores.redis.codes import STATES, UNFINISHED_LETTERS
from ksana.stores.redis.link import Link
from ksana.stores.redis.scripts import COUNTS, FAMILY, FIRE_LOG, GET_RUNS, LAST_ATTEMPTS, LAST_RUNS, NEXT_DUE, NEXT_FIRE
from ksana.stores.redis.shelves import decode_callback, decode_gap, decode_progress
from ksana.stores.redis.values import run_from_value, runs_from_reply, unpacked_instant

_STATE_OF = {letter: state for state, letter in STATES.items()}


async def runs_by_id(link: Link, ids: Iterable[int]) -> list[Run]:
    wanted = list(dict.fromkeys(ids))
    return runs_from_reply(await link.run(GET_RUNS, *wanted)) if wanted else []


async def children(link: Link, parent_id: int) -> list[Run]:
    _, reply = await link.run(FAMILY, parent_id)
    return [run for run in runs_from_reply(reply) if run.id != parent_id]


async def last_runs(link: Link, job_ids: Iterable[int], states: Collection[State]) -> dict[int, Run]:
    ids = list(dict.fromkeys(job_ids))
    unfinished = "".join(STATES[state] for state in states if not state.is_final)
    final = "".join(STATES[state] for state in states if state.is_final)
    runs = runs_from_reply(await link.run(LAST_RUNS, unfinished, final, len(ids), *ids)) if ids else []
    return {run.job_id: run for run in runs if run.job_id is not None}


async def attempts(link: Link, run_id: int) -> list[Attempt]:
    reply: dict[bytes, bytes] = await link.ask("HGETALL", link.key(f"attempts:{run_id}"))
    return [
        attempt_from_parts(run_id, epoch, reply[b"%d" % epoch], reply.get(b"%dq" % epoch), reply.get(b"%dp" % epoch))
        for epoch in sorted(int(field) for field in reply if field.isdigit())
    ]


async def last_attempts(link: Link, run_ids: Iterable[int], most_bytes: int | None) -> dict[int, LastAttempt]:
    ids = list(dict.fromkeys(run_ids))
    if not ids:
        return {}
    reply = await link.run(LAST_ATTEMPTS, -1 if most_bytes is None else most_bytes, len(ids), *ids)
    found: dict[int, LastAttempt] = {}
    for at in range(0, len(reply), 6):
        id, epoch, told, sent, received, is_whole = reply[at : at + 6]
        attempt = attempt_from_parts(int(id), int(epoch), told, sent, received, is_whole=bool(is_whole))
        found[attempt.run_id] = LastAttempt(attempt, bodies_omitted=not is_whole)
    return found


async def callbacks(link: Link, run_id: int) -> list[CallbackRecord]:
    reply: dict[bytes, bytes] = await link.ask("HGETALL", link.key(f"ledger:{run_id}"))
    return sorted(map(decode_callback, reply.values()), key=lambda record: record.id)


async def progress(link: Link, run_ids: Iterable[int]) -> dict[int, Progress]:
    ids = list(dict.fromkeys(run_ids))
    values = await link.ask("HMGET", link.key("progress"), *ids) if ids else []
    return {id: decode_progress(value) for id, value in zip(ids, values, strict=True) if value is not None}


async def fire_log(link: Link, job_id: int, since: datetime, until: datetime, limit: int) -> list[FireRecord]:
    """A slot with a run shows what became of it; slots without one show as the gap they are part of."""
    runs, gaps = await link.run(FIRE_LOG, job_id, to_micros(since), to_micros(until), limit)
    records = [line_of_run(run_from_value(value, None)) for value in runs]
    records += [line_of_gap(gap) for gap in map(decode_gap, gaps) if gap.to_at >= since]
    records.sort(key=lambda record: record.from_at, reverse=True)
    return records[:limit]


async def next_fire_at(link: Link) -> datetime | None:
    return unpacked_instant(await link.run(NEXT_FIRE))


async def pauses(link: Link, limit: int) -> list[tuple[int, datetime]]:
    found = await link.ask("ZRANGE", link.key("pauses"), 0, limit - 1, "WITHSCORES")
    return [(int(id), from_micros(int(until))) for id, until in zip(found[::2], found[1::2], strict=True)]


async def next_due_at(link: Link, queues: Sequence[str]) -> datetime | None:
    return unpacked_instant(await link.run(NEXT_DUE, *queues))


async def counts(link: Link, now: datetime) -> Counts:
    jobs, unfinished, due, oldest, dead = await link.run(COUNTS, to_micros(now), UNFINISHED_LETTERS)
    counted = {
        (surface.decode(), enabled): count
        for surface, *each in zip(jobs[::3], jobs[1::3], jobs[2::3], strict=True)
        for enabled, count in zip((False, True), each, strict=True)
    }
    return Counts(
        jobs={key: count for key, count in counted.items() if count},
        unfinished={
            _STATE_OF[letter]: count for letter, count in zip(UNFINISHED_LETTERS, unfinished, strict=True) if count
        },
        due=due,
        oldest_due_at=None if oldest is None else from_micros(int(oldest)),
        dead_letters=dead,
    )
