"""What lies under a prefix, and what should: every set told again from the values alone."""

from collections import defaultdict
from typing import Any

from redis.asyncio import Redis

from ksana.domain.items import KIND as ITEM
from ksana.domain.jobs import Job
from ksana.domain.ports import Store
from ksana.domain.queries import RunQuery
from ksana.domain.runs import Run
from ksana.domain.states import CLAIMABLE, Reason, State
from ksana.domain.times import to_micros
from ksana.stores.redis.codes import STATES

Sets = dict[str, dict[str, float]]

# What is kept in order beside runs and jobs has no other home to be told again from.
_OTHERS = (
    *("alerts", "owed", "gaps", "answers", "minutes", "callbacks", "progress", "kept", "open", "strays", "names"),
    *("objects", "audit", "buckets"),
)


async def names_under(client: Redis, prefix: str) -> list[str]:
    found = [key.decode() async for key in client.scan_iter(match=f"{{{prefix}}}:*", count=1000)]
    return sorted(key.removeprefix(f"{{{prefix}}}:") for key in found)


async def sets_under(client: Redis, prefix: str) -> Sets:
    """The ordered sets by which runs and jobs are found."""
    found: Sets = {}
    for name in await names_under(client, prefix):
        key = f"{{{prefix}}}:{name}"
        if name.partition(":")[0] not in _OTHERS and await client.type(key) == b"zset":
            members: list[Any] = await client.zrange(key, 0, -1, withscores=True)
            found[name] = {member.decode(): score for member, score in members}
    # A job that nobody waits for any more may stand here until somebody looks.
    found.pop("lines", None)
    return found


async def sets_told_again(store: Store, job_ids: list[int]) -> Sets:
    runs = (await store.find_runs(RunQuery(limit=1_000_000))).items
    told: defaultdict[str, dict[str, float]] = defaultdict(dict)
    for run in runs:
        for name, member, score in _places(run):
            told[name][member] = score
    for job in await store.get_jobs(job_ids):
        for name, member, score in _job_places(job):
            told[name][member] = score
    return dict(told)


def _places(run: Run) -> list[tuple[str, str, float]]:
    id, letter, job = str(run.id), STATES[run.state], run.job_id
    group = f"{letter}{'t' if run.parent_id is None else 'c'}:{run.surface}"
    places: list[tuple[str, str, float]] = [(f"state:{group}", id, run.id)]
    if run.parent_id is not None:
        places.append((f"children:{run.parent_id}", id, run.id))
    if run.slot_at is not None:
        places.append((f"slots:{job}", id, to_micros(run.slot_at)))
    if run.node_id is not None:
        places.append((f"held:{run.node_id}", id, run.id))
    if run.subject is not None:
        places.append((f"about:{run.subject}", id, run.id))
    if run.state is State.RUNNING and run.kind == ITEM:
        places.append((f"out:{run.queue}", id, run.id))
        if run.subject is not None:
            places.append((f"out:{run.queue}\0{run.subject}", id, run.id))
    if run.deadline_at is not None:
        places.append(("deadlines", id, to_micros(run.deadline_at)))
    if run.state in CLAIMABLE:
        ready = f"{run.priority.value}:{run.queue}"
        places.append((f"ready:{ready}", f"{run.id:016}", to_micros(run.due_at)))
        if run.kind == ITEM and run.step is not None:
            places.append((f"typed:{ready}\0{run.step}", f"{run.id:016}", to_micros(run.due_at)))
    if run.ended_at is not None:
        places.append((f"ended:{group}", id, to_micros(run.ended_at)))
        if job is not None:
            places.append((f"final:{letter}{job}", id, run.id))
    elif job is not None:
        places += _places_in_job(run, id)
    return places


def _places_in_job(run: Run, id: str) -> list[tuple[str, str, float]]:
    places: list[tuple[str, str, float]] = [(f"live:{run.job_id}", id, run.id)]
    if not run.holds_slot:
        places.append((f"apart:{run.job_id}", id, run.id))
    if run.state is State.WAITING:
        if run.holds_slot:
            places.append((f"idle:{run.job_id}", id, run.id))
        if run.reason is Reason.SLOT:
            places.append((f"line:{run.job_id}", f"{run.id:016}", to_micros(run.created_at)))
    return places


def _job_places(job: Job) -> list[tuple[str, str, float]]:
    places: list[tuple[str, str, float]] = [("jobs", str(job.id), job.id)]
    if job.next_fire_at is not None:
        places.append(("due", f"{job.id:016}", to_micros(job.next_fire_at)))
    if job.deleted_at is None:
        places.append((f"jobs:{int(job.enabled)}{job.surface}", str(job.id), job.id))
    return places
