"""Small builders: a job, a run, a move, with only what the test is about said aloud."""

from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

from ksana.domain.claims import Claim, Claimed, Turn
from ksana.domain.fires import DueJob, Fire, Gap
from ksana.domain.jobs import Job, TargetSpec
from ksana.domain.moves import Move, advance
from ksana.domain.outcomes import Exchange, Verdict
from ksana.domain.policies import Overlap, OverlapRule
from ksana.domain.ports import Store
from ksana.domain.runs import Attempt, Run
from ksana.domain.schedules import Every
from ksana.domain.states import Event, Reason

NOW = datetime(2030, 1, 1, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
LEASE = timedelta(seconds=15)

PARALLEL = Overlap(OverlapRule.PARALLEL)


def one_at_a_time(limit: int = 1) -> Overlap:
    return Overlap(OverlapRule.QUEUE, limit)


def a_job(id: int, **said: Any) -> Job:
    """A job that nothing is planned for."""
    values: dict[str, Any] = {
        "surface": "v2",
        "name": f"job {id}",
        "target": TargetSpec("noop"),
        "overlap": PARALLEL,
        "created_at": NOW,
        "updated_at": NOW,
    }
    return Job(id=id, **(values | said))


def a_planned_job(id: int, fire_at: datetime = NOW, **said: Any) -> Job:
    """A job of every second whose cursor stands on `fire_at`."""
    values: dict[str, Any] = {
        "schedule": Every(every=SECOND, origin_at=NOW),
        "next_slot_at": fire_at,
        "next_fire_at": fire_at,
    }
    return a_job(id, **(values | said))


def a_run(id: int, job_id: int = 1, **said: Any) -> Run:
    """A run somebody asked for, due now."""
    values: dict[str, Any] = {"job_version": 1, "surface": "v2", "kind": "noop", "due_at": NOW, "created_at": NOW}
    return Run(id=id, job_id=job_id, **(values | said))


def a_gap(job_id: int, from_at: datetime, count: int = 1, reason: Reason = Reason.MISFIRE) -> Gap:
    return Gap(
        job_id=job_id,
        from_at=from_at,
        to_at=from_at + (count - 1) * SECOND,
        count=count,
        reason=reason,
        recorded_at=from_at + HOUR,
    )


def an_attempt(run: Run, **said: Any) -> Attempt:
    values: dict[str, Any] = {
        "number": run.attempt,
        "epoch": run.epoch,
        "node_id": run.node_id,
        "started_at": NOW,
        "ended_at": NOW + SECOND,
        "verdict": Verdict.SUCCESS,
    }
    return Attempt(run_id=run.id, **(values | said))


def an_exchange(**said: Any) -> Exchange:
    values: dict[str, Any] = {"request_line": "POST / HTTP/1.1", "response_code": 200}
    return Exchange(**(values | said))


def a_move(run: Run, event: Event, now: datetime = NOW, *, attempt: Attempt | None = None, **said: Any) -> Move:
    """The move of a run as it was read, by an event."""
    frees_slot, taken_from = said.pop("frees_slot", False), said.pop("taken_from", None)
    return Move(run.epoch, advance(run, event, now, **said), attempt, frees_slot, taken_from)


def a_claim(node_id: int = 1, now: datetime = NOW, limit: int = 100, queues: Iterable[str] = ("default",)) -> Claim:
    return Claim(node_id=node_id, now=now, limit=limit, queues=tuple(queues))


def fires(*, runs: Callable[[DueJob], list[Run]], gaps: Callable[[DueJob], list[Gap]] = lambda due: []) -> Any:
    """A decision that makes these runs of every due job and moves its cursor one second on."""

    def decide(due: list[DueJob]) -> list[Fire]:
        return [Fire(one.job.id, runs(one), gaps(one), one.slot_at + SECOND, one.slot_at + SECOND) for one in due]

    return decide


def slot_run(due: DueJob, id: int, **said: Any) -> Run:
    """The run of a due slot."""
    return a_run(id, due.job.id, slot_at=due.slot_at, due_at=due.fire_at, **said)


class TakesRuns(Protocol):
    """As much of a store as it takes to put runs in."""

    async def add_run(self, job_id: int, make: Callable[[Job, int], Run]) -> Run: ...


async def put(store: TakesRuns, *runs: Run) -> None:
    """Have these runs in the store, just as they are."""
    for run in runs:
        assert run.job_id is not None
        await store.add_run(run.job_id, lambda job, active, run=run: run)  # type: ignore[misc]


async def get(store: Store, run_id: int) -> Run:
    [run] = await store.get_runs([run_id])
    return run


async def get_job(store: Store, job_id: int) -> Job:
    [job] = await store.get_jobs([job_id])
    return job


async def claim(store: Store, **said: Any) -> list[Claimed]:
    turn: Turn = await store.turn([], a_claim(**said))
    return turn.claimed


def ids(claimed: Iterable[Claimed]) -> list[int]:
    return [one.run.id for one in claimed]
