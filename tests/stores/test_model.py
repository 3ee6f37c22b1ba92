"""Every store against the model: the same random life, and at every step the same answers."""

import os
import random
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, TypeVar

import msgspec
import pytest

from ksana.domain.changes import JobChange
from ksana.domain.claims import Claim, Claimed
from ksana.domain.errors import KsanaError
from ksana.domain.fires import DueJob, Fire, Lateness, decide
from ksana.domain.idempotency import IdempotencyRecord, IdempotencyReplay
from ksana.domain.jobs import Job, TargetSpec
from ksana.domain.moves import Branch, Move, advance
from ksana.domain.outcomes import Exchange, Verdict
from ksana.domain.plans import ChainPlan, JobPlan, Plan, begun, new_child, read_plan, shape_of_plan, write_plan
from ksana.domain.policies import Misfire, MisfireRule, Overlap, OverlapRule, Priority
from ksana.domain.ports import Store
from ksana.domain.queries import JobQuery, JobSort, RunQuery, RunSort
from ksana.domain.retention import Retention
from ksana.domain.runs import Attempt, Run, Trigger
from ksana.domain.schedules import Every
from ksana.domain.states import AT_REST, FINAL, TABLE, UNSTARTED, Event, Reason, State
from ksana.domain.steering import (
    Family,
    Steer,
    complete_step,
    ended,
    expire,
    go_on,
    halt,
    retry_failed,
    retry_step,
    stopped,
)
from tests.stores.builders import HOUR, LEASE, MINUTE, NOW, SECOND
from tests.stores.model import ModelStore

T = TypeVar("T")

STEPS = 140
LIVES = 2
EXPLORE = os.environ.get("KSANA_TEST_EXPLORE") == "1"
NAMES = ["Report", "report_2", "100%", "Größe", "GRÖSSE", "任务", "a b", "a\\b", "🚀 Rocket"]
TAGS = ["red", "Red", "blau", "🚀"]
QUEUES = ["default", "slow", "队列"]
SURFACES = ["v2", "tasks"]
KINDS = ["http", "noop"]
# What happens to a run with children, and to its steps, happens by steering.
STEERED = frozenset({Event.BRANCH, Event.STOP, Event.REOPEN, Event.COMPLETE, Event.RESUME, Event.ADMIT})


class Life:
    """One random life, led in two stores at once."""

    def __init__(self, seed: int, store: Store, model: ModelStore) -> None:
        self.random = random.Random(seed)
        self.store = store
        self.model = model
        self.now = NOW
        self.jobs: list[int] = []
        self.runs: list[int] = []
        self.parents: list[int] = []
        self.nodes: list[int] = []
        self.next_job = 1
        self.next_run = 1
        self.tokens = 0

    async def both(self, verb: str, *args: Any, same: Callable[[Any], Any] = lambda answer: answer) -> Any:
        """Ask both stores the same; they must agree, on refusals too."""
        answers = [await _answer(store, verb, args) for store in (self.store, self.model)]
        real, expected = answers
        if isinstance(expected, Exception):
            assert type(real) is type(expected), (verb, args, real)
            return None
        assert not isinstance(real, Exception), (verb, args, real)
        assert same(real) == same(expected), (verb, args)
        return real

    # What a decision may draw; both stores must draw the same, so each decision starts where the last one stood.

    def run_id(self) -> int:
        self.next_run += 1
        return self.next_run

    def jitter(self) -> float:
        return 0.5

    def token(self) -> str:
        self.tokens += 1
        return f"token-{self.next_run}"

    def instant(self) -> datetime:
        return self.now + timedelta(seconds=self.random.randint(-90, 30))

    def a_new_job(self) -> Job:
        pick = self.random.choice
        self.next_job += 1
        planned = self.random.random() < 0.8
        at = self.instant()
        rule = pick(list(OverlapRule))
        return Job(
            id=self.next_job,
            surface=pick(SURFACES),
            name=pick(NAMES),
            ref=pick(["", *NAMES]),
            target=TargetSpec(pick(KINDS), {"n": self.next_job}),
            tags=tuple(self.random.sample(TAGS, self.random.randint(0, 3))),
            enabled=self.random.random() < 0.8,
            schedule=Every(every=timedelta(seconds=pick([1, 7, 60])), origin_at=NOW) if planned else None,
            queue=pick(QUEUES),
            priority=pick(list(Priority)),
            overlap=Overlap(rule, self.random.randint(1, 2)),
            misfire=Misfire(pick(list(MisfireRule)), 2),
            awaits_callback=self.random.random() < 0.3,
            created_at=self.now,
            updated_at=self.now,
            next_slot_at=at if planned else None,
            next_fire_at=at + SECOND if planned else None,
        )

    # Steps

    async def add_jobs(self) -> None:
        jobs = [self.a_new_job() for _ in range(self.random.randint(1, 3))]
        await self.both("add_jobs", jobs, self.maybe_record())
        self.jobs += [job.id for job in await self.store.get_jobs([job.id for job in jobs])]

    def maybe_record(self) -> IdempotencyRecord | None:
        if self.random.random() < 0.5:
            return None
        key = str(self.random.randint(1, 20))
        return IdempotencyRecord(self.random.choice(SURFACES), key, key.encode(), 201, b"\0body", self.now)

    async def change_jobs(self) -> None:
        chosen = self.random.sample(self.jobs, min(len(self.jobs), self.random.randint(1, 2)))
        changes = [self.a_change(job) for job in await self.model.get_jobs(chosen)]
        await self.both("change_jobs", changes, same=_by_id)

    def a_change(self, job: Job) -> JobChange:
        pick = self.random.choice
        at = self.instant()
        version = job.version + (self.random.random() < 0.1)
        deletes = self.random.random() < 0.1
        moves = deletes or self.random.random() < 0.5
        new = msgspec.structs.replace(
            job,
            version=version + 1,
            name=pick(NAMES),
            tags=tuple(self.random.sample(TAGS, 2)),
            enabled=self.random.random() < 0.8,
            overlap=Overlap(pick(list(OverlapRule)), self.random.randint(1, 3)),
            updated_at=self.now,
            deleted_at=self.now if deletes else job.deleted_at,
            next_slot_at=at if moves and job.schedule and not deletes else None,
            next_fire_at=at if moves and job.schedule and not deletes else None,
        )
        cancels = pick([frozenset(), UNSTARTED, AT_REST])
        return JobChange(version=version, job=new, moves_cursor=moves, cancels=cancels, reason=Reason.OPERATOR)

    async def fire(self) -> None:
        start = self.next_run

        def decide_all(due: list[DueJob]) -> list[Fire]:
            self.next_run = start
            return [decide(one, self.now, Lateness(5 * SECOND, SECOND), self) for one in due]

        fired = await self.both(
            "fire_due",
            self.now,
            self.random.choice([1, 3, 100]),
            decide_all,
            same=lambda fired: (_runs(fired.runs), fired.gaps, fired.looked_at),
        )
        self.runs += [one.run.id for one in fired.runs]

    async def add_run(self) -> None:
        if not self.jobs:
            return
        self.next_run += 1
        id, pick = self.next_run, self.random.choice
        queue, priority, state = pick(QUEUES), pick(list(Priority)), pick([State.SCHEDULED, State.WAITING])
        trigger = Trigger.APART if state is State.SCHEDULED and pick([True, False]) else Trigger.MANUAL
        due_at = self.instant()

        def make(job: Job, active: int) -> Run:
            return Run(
                id=id,
                job_id=job.id,
                job_version=job.version,
                surface=job.surface,
                kind=job.target.kind,
                queue=queue,
                trigger=trigger,
                priority=priority,
                state=state,
                reason=Reason.SLOT if state is State.WAITING else None,
                due_at=due_at,
                created_at=self.now,
                input=b"\xff" * active,
            )

        record = self.maybe_record()
        await self.both("add_run", pick(self.jobs), make, record and (lambda run: record))
        self.runs += [run.id for run in await self.store.get_runs([id])]

    async def turn(self) -> None:
        runs = self.random.choice([self.runs, self.steps_under_way()])
        chosen = self.random.sample(runs, min(len(runs), self.random.randint(0, 6)))
        moves = [move for run in await self.model.get_runs(chosen) if (move := self.a_move(run))]
        claim = Claim(
            node_id=self.random.choice(self.nodes or [1]),
            now=self.now,
            limit=self.random.choice([1, 3, 50]),
            queues=tuple(self.random.sample(QUEUES, self.random.randint(1, 3))),
        )
        await self.both(
            "turn",
            moves,
            self.random.choice([None, claim]),
            same=lambda turn: (turn.lost, _runs(turn.claimed), _jobs(turn.claimed), _moved(turn.followed)),
        )
        self.runs += [child.id for move in moves if move.branch for child in move.branch.children]

    def steps_under_way(self) -> list[int]:
        runs = self.model._runs.values()
        return [run.id for run in runs if run.parent_id is not None and run.node_id is not None]

    def a_move(self, run: Run) -> Move | None:
        if run.id in self.parents:
            return None
        if run.state is State.RUNNING and run.job_id is not None and self.random.random() < 0.3:
            return self.a_branch(run)
        events = [event for state, event in TABLE if state is run.state and event not in STEERED | {Event.CLAIM}]
        if not events:
            return None
        event = self.random.choice(events)
        deadline_at = self.instant() if event is Event.ACCEPT else None
        moved = advance(run, event, self.now, due_at=self.instant(), deadline_at=deadline_at, error="é🚀" * 400)
        stale = self.random.random() < 0.15
        attempt = Attempt(
            run_id=run.id,
            number=run.attempt,
            epoch=run.epoch,
            node_id=run.node_id,
            started_at=self.now,
            ended_at=self.now,
            verdict=self.random.choice(list(Verdict)),
            code=self.random.choice([None, 200]),
            error=self.random.choice(["", "it broke"]),
            result=self.random.choice([None, b"", b"\0'%\\"]),
            exchange=self.random.choice([None, Exchange("GET /", {"a": "ü"}, self.random.randbytes(40))]),
        )
        return Move(
            run.epoch - stale,
            moved,
            attempt if run.state is State.RUNNING else None,
            frees_slot=moved.ended_at is not None and self.random.random() < 0.9,
            taken_from=run.node_id if self.random.random() < 0.3 else None,
            artifact=self.random.choice([None, None, b"", b"[1]"]),
            checkpoint=self.random.choice([None, None, b"\0half"]),
        )

    def a_branch(self, run: Run) -> Move:
        plan, job = self.a_plan()
        shape = shape_of_plan(plan)
        children = [
            new_child(run, self.run_id(), f"s{place}", self.now, kind="noop", job=job)
            for place in range(len(shape.needs))
        ]
        self.parents.append(run.id)
        born, end = begun(children, shape, self.now)
        moved = advance(run, Event.BRANCH, self.now, reason=Reason.CHILDREN)
        if end is not None:
            moved = ended(run, end, self.now)
        return Move(run.epoch, moved, frees_slot=end is not None, branch=Branch(born, write_plan(plan)))

    def a_plan(self) -> tuple[Plan, Job | None]:
        if self.random.random() < 0.2:
            job = self.random.choice(list(self.model._jobs.values()))
            return JobPlan(job.id), job
        nodes = [
            {
                "id": f"s{place}",
                "dependsOn": [f"s{need}" for need in range(place) if self.random.random() < 0.4],
                "when": self.random.choice(["all_success", "all_success", "all_done"]),
                "type": self.random.choice(["echo", "echo", "noop"]),
            }
            for place in range(self.random.randint(1, 5))
        ]
        bounds = {"maxParallel": self.maybe([1, 2]), "failFast": self.random.random() < 0.3}
        return ChainPlan({"nodes": nodes, **bounds}), None

    async def steer(self) -> None:
        if not self.parents:
            return
        parent_id = self.random.choice(self.parents)
        now = self.now

        def follow(family: Family) -> list[Move]:
            return go_on(family, shape_of_plan(read_plan(family.parent.input)), now)

        above = self.maybe([follow])
        await self.both("steer", parent_id, self.a_decision(self.random.random()), (), above, same=_moved)

    def a_decision(self, drawn: float) -> Steer:
        now = self.now

        def decide(family: Family) -> list[Move]:
            parent = family.parent
            if not family.children:
                return []
            shape, place = shape_of_plan(read_plan(parent.input)), int(drawn * 1000) % len(family.children)
            if drawn < 0.3:
                return retry_step(family, shape, place, now, reason="", artifact=None)
            if drawn < 0.6:
                return complete_step(family, shape, place, now, reason="", artifact=b"1")
            if drawn < 0.8:
                return retry_failed(family, shape, now)
            if drawn < 0.9:
                return expire(family, now)
            return halt(family, now) if parent.state is not State.RUNNING else [stopped(parent, now)]

        return decide

    async def keep_checkpoint(self) -> None:
        for run in await self.model.get_runs(self.runs[-2:]):
            await self.both("keep_checkpoint", run.id, run.epoch - self.random.choice([0, 0, 1]), b"far")

    async def join(self) -> None:
        node = await self.both("join", "node 🚀", self.now, LEASE)
        self.nodes.append(node.id)

    async def beat(self) -> None:
        if self.nodes:
            await self.both(
                "beat",
                self.random.choice(self.nodes),
                self.now,
                LEASE,
                same=lambda beat: (beat.alive, sorted(beat.taken)),
            )

    async def leave(self) -> None:
        if self.nodes and self.random.random() < 0.3:
            await self.both("leave", self.random.choice(self.nodes))

    async def prune(self) -> None:
        before = self.now - timedelta(seconds=self.random.choice([0, 60, 300]))
        await self.both("prune", Retention(self.now, before, self.random.choice([0, 1, 3]), 10_000))

    async def step(self) -> None:
        steps: list[tuple[Callable[[], Any], int]] = [
            (self.add_jobs, 3),
            (self.change_jobs, 3),
            (self.fire, 5),
            (self.add_run, 5),
            (self.turn, 12),
            (self.steer, 3),
            (self.keep_checkpoint, 1),
            (self.join, 1),
            (self.beat, 2),
            (self.leave, 1),
            (self.prune, 1),
        ]
        [chosen] = self.random.choices([step for step, _ in steps], [weight for _, weight in steps])
        self.now += timedelta(seconds=self.random.choice([0, 0.000001, 1, 1, 7]))
        await chosen()

    # Reads

    async def look(self) -> None:
        """Compare everything that can be read, with a few random questions."""
        pick = self.random.choice
        since = pick([None, self.instant() - MINUTE])
        some_jobs = self.random.sample(self.jobs, min(5, len(self.jobs)))
        some_runs = self.random.sample(self.runs, min(8, len(self.runs)))
        await self.both("get_jobs", some_jobs, same=_by_id)
        await self.both("get_runs", some_runs, same=_by_id)
        await self.both("find_jobs", self.a_job_query())
        await self.both("find_runs", self.a_run_query(since), same=lambda page: (_plain(page.items), page.total))
        await self.both("last_attempts", some_runs)
        for states in (frozenset(State), {pick(list(State)), State.SUCCESS}):
            await self.both("last_runs", some_jobs, states, same=lambda found: _by_id(list(found.values())))
        await self.both("next_fire_at")
        await self.both("next_due_at", self.random.sample(QUEUES, 2))
        await self.both("counts", self.now)
        await self.both("minutes", self.now - 5 * MINUTE, self.now + SECOND)
        await self.both("nodes")
        await self.both("run_by_token", f"token-{pick([0, *self.runs])}")
        await self.both("find_idempotency", pick(SURFACES), str(self.random.randint(1, 20)))
        await self.both("lapsed", self.now, pick([2, 1000]), same=_lapsed)
        await self.both("kept", some_runs)
        for parent_id in self.parents[-2:]:
            await self.both("children", parent_id, same=_by_id)
        for run_id in some_runs[:2]:
            await self.both("attempts", run_id)
        for job_id in some_jobs[:1]:
            await self.both("fire_log", job_id, self.now - HOUR, self.now + HOUR, 10_000, same=_unordered)

    def a_job_query(self) -> JobQuery:
        maybe, pick = self.maybe, self.random.choice
        return JobQuery(
            surface=maybe(SURFACES),
            name=pick(["", "", "r", "ÖSS", "ss", "%", "_", "\\", "务", "🚀 r"]),
            exact_name=maybe(NAMES, 0.1),
            ref=maybe(NAMES, 0.1),
            kind=maybe(KINDS),
            tag=maybe(TAGS),
            enabled=maybe([True, False]),
            sort=pick(list(JobSort)),
            descending=pick([True, False]),
            offset=pick([0, 1]),
            limit=pick([2, 100]),
        )

    def a_run_query(self, since: datetime | None) -> RunQuery:
        maybe, pick = self.maybe, self.random.choice
        return RunQuery(
            surface=maybe(SURFACES),
            job_id=maybe(self.jobs),
            job_name=pick(["", "", "", "R", "%", "größe"]),
            parent_id=maybe(self.parents, 0.1),
            is_child=maybe([True, False]),
            states=frozenset(pick([(), (), FINAL, (State.SUCCESS, State.RUNNING)])),
            kind=maybe(KINDS),
            tag=maybe(TAGS, 0.2),
            since=since,
            until=maybe([self.now, self.now - MINUTE]),
            before_id=maybe(self.runs, 0.2),
            after_id=maybe(self.runs, 0.2),
            sort=pick(list(RunSort)),
            descending=pick([True, False]),
            offset=pick([0, 1]),
            limit=pick([3, 100]),
        )

    def maybe(self, values: list[T], chance: float = 0.3) -> T | None:
        return self.random.choice(values) if values and self.random.random() < chance else None


async def _answer(store: Any, verb: str, args: tuple[Any, ...]) -> Any:
    try:
        return await getattr(store, verb)(*args)
    except (KsanaError, IdempotencyReplay) as refusal:
        return refusal


def _by_id(found: list[Any]) -> list[Any]:
    return sorted(_plain(found), key=lambda one: one.id)


def _plain(found: list[Any]) -> list[Any]:
    # Of several steps that failed, any may be the one that a chain tells of.
    return [msgspec.structs.replace(one, error="") if _tells_of_children(one) else one for one in found]


def _tells_of_children(one: Any) -> bool:
    return isinstance(one, Run) and one.reason is Reason.CHILDREN


def _moved(told: list[tuple[Move, Job | None]]) -> list[tuple[int, Run, int | None]]:
    runs = _by_id([move.run for move, _ in told])
    by_id = sorted(((move, job) for move, job in told), key=lambda pair: pair[0].run.id)
    return [(move.epoch, run, None if job is None else job.id) for (move, job), run in zip(by_id, runs, strict=True)]


def _runs(claimed: list[Claimed]) -> list[Run]:
    return _plain([one.run for one in claimed])


def _jobs(claimed: list[Claimed]) -> list[tuple[int, int] | None]:
    return [None if one.job is None else (one.job.id, one.job.version) for one in claimed]


def _lapsed(claimed: list[Claimed]) -> Any:
    # A limit that cuts among equals may cut anywhere.
    return len(claimed) if len(claimed) == 2 else _by_id(_runs(claimed))


def _unordered(records: list[Any]) -> list[str]:
    return sorted(map(str, records))


@pytest.mark.parametrize("number", range(LIVES))
async def test_a_random_life_goes_as_in_the_model(store: Store, number: int) -> None:
    seed = random.SystemRandom().randrange(10**9) if EXPLORE else number
    starts = {what: (await store.reserve_ids(what, 1)).stop for what in ("job", "run", "node")}
    life = Life(seed, store, ModelStore(starts, await store.identity()))
    try:
        await live(life)
    except AssertionError as error:
        error.add_note(f"this life had the seed {seed}")
        raise


async def live(life: Life) -> None:
    for _ in range(STEPS):
        await life.step()
        if life.random.random() < 0.15:
            await life.look()
    await life.look()
    assert len(life.runs) > STEPS / 4
