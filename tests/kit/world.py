"""A world to try the engine in: real engines on a real store, a clock that moves when told, a target that obeys.

Time goes from one instant at which something is due straight to the next, and at each of them every node does its
duties until nothing changes any more; so a test of hours takes milliseconds and always goes the same way.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import msgspec

from ksana.domain.alerts import AlertQuery, AlertState
from ksana.domain.callbacks import Word
from ksana.domain.claims import Claimed
from ksana.domain.durations import parse_duration
from ksana.domain.jobs import Job, JobSpec, TargetSpec
from ksana.domain.moves import Move
from ksana.domain.policies import Misfire, MisfireRule, Overlap, OverlapRule, Timeouts
from ksana.domain.ports import Hook, Store, Target
from ksana.domain.queries import FireRecord, RunQuery
from ksana.domain.runs import Attempt, Run
from ksana.domain.schedules import CronSchedule, Every, Once, Schedule
from ksana.domain.states import State
from ksana.engine.engine import Engine, EngineOptions
from ksana.targets.builtin import EchoTarget, NoopTarget
from ksana.targets.chains import ChainTarget, JobStep, QueueStep
from tests.kit.clock import NodeClock, VirtualClock
from tests.kit.gate import Gate, Outage
from tests.kit.script import Script, ScriptedTarget

MakeStore = Callable[[], Awaitable[Store]]
Span = str | timedelta

_POLL = timedelta(seconds=1)
_OTHERS: tuple[Target, ...] = (
    ChainTarget(),
    EchoTarget(),
    JobStep("job"),
    NoopTarget(),
    QueueStep(),
)
_OVERRUN = timedelta(seconds=5, microseconds=1)
_UNDELIVERED = AlertQuery(state=AlertState.PENDING, limit=1000)
_END_OF_TIME = datetime(9999, 12, 31, tzinfo=UTC)
_MOST_ROUNDS = 10_000
_DEADLINE = 30.0
# More than any chain of callbacks between two steps of an engine is long.
_QUIET_ROUNDS = 25


def span_of(span: Span) -> timedelta:
    return parse_duration(span) if isinstance(span, str) else span


class Diary:
    """An observer that writes down what it is told."""

    def __init__(self) -> None:
        self.lost: list[int] = []
        self.moved: list[Move] = []
        self.jumps: list[timedelta] = []
        self.store: list[bool] = []

    def on_fired(self, runs: Any, gaps: Any, now: datetime) -> None: ...

    def on_started(self, claimed: Any, now: datetime) -> None: ...

    def on_moved(self, moves: Any, now: datetime) -> None:
        self.moved += [move for move, _ in moves]

    def on_lost(self, run_ids: Any, now: datetime) -> None:
        self.lost += run_ids

    def on_changed(self, jobs: Any, runs: Any, now: datetime) -> None: ...

    def on_store(self, available: bool, error: str) -> None:
        self.store.append(available)

    def on_clock_jump(self, jump: timedelta) -> None:
        self.jumps.append(jump)


class Node:
    """One engine with a way to the store, a clock and a face of the target of its own."""

    def __init__(
        self,
        name: str,
        store: Store,
        clock: VirtualClock,
        script: Script,
        options: dict[str, Any],
        hooks: Sequence[Hook] = (),
    ) -> None:
        self.name = name
        self.gate = Gate(store)
        self.clock = NodeClock(clock)
        self.target = ScriptedTarget(script, self.clock, name)
        self.diary = Diary()
        self.engine = Engine(
            cast(Store, self.gate),
            {target.kind: target for target in (self.target, *_OTHERS)},
            EngineOptions(name=name, **options),
            clock=self.clock,
            ticks=self.clock.ticks,
            observers=[self.diary],
            hooks=hooks,
        )
        self.is_dead = False

    @property
    def is_live(self) -> bool:
        return not (self.is_dead or self.clock.is_frozen)

    @property
    def id(self) -> int:
        return self.engine.runner.node_id

    @property
    def stands_still(self) -> bool:
        """Every attempt under way waits for time to pass or for a word of the test."""
        return self.engine.runner.executing == self.target.blocked


class World:
    """Nodes, one store, one time line."""

    def __init__(self, make_store: MakeStore, hooks: Sequence[Hook] = (), **options: Any) -> None:
        self._make_store = make_store
        self._hooks = hooks
        self._options = {"workers": 10, **options}
        self.clock = VirtualClock()
        self.sink = Script()
        self.nodes: dict[str, Node] = {}
        self._names = 0
        self._is_troubled = False
        self._pauses: list[timedelta] = []

    async def open(self) -> "World":
        self.store = await self._make_store()
        await self.node("a")
        return self

    async def close(self) -> None:
        """Let go of every attempt that still hangs."""
        self.sink.close()
        for node in self.nodes.values():
            node.clock.stop_for_good()
        for _ in range(_QUIET_ROUNDS):
            await asyncio.sleep(0)

    # Nodes

    @property
    def now(self) -> datetime:
        return self.clock.time

    @property
    def main(self) -> Node:
        return next(node for node in self.nodes.values() if node.is_live)

    @property
    def live(self) -> list[Node]:
        return [node for node in self.nodes.values() if node.is_live]

    async def node(self, name: str, **options: Any) -> Node:
        """The node of that name; one that is new, or that died, joins now. Its `hooks` are the world's unless said."""
        node = self.nodes.get(name)
        if node is None or node.is_dead:
            hooks = options.pop("hooks", self._hooks)
            node = Node(name, await self._make_store(), self.clock, self.sink, {**self._options, **options}, hooks)
            await node.engine.join()
            self.nodes[name] = node
        return node

    def freeze(self, name: str = "a") -> None:
        """Stop a node in its tracks, as a long pause of its machine would."""
        self._is_troubled = True
        self.nodes[name].clock.is_frozen = True

    async def thaw(self, name: str = "a") -> None:
        self.nodes[name].clock.is_frozen = False
        self.clock.wake()
        await self.settle()

    def kill(self, name: str = "a") -> None:
        """End a node as a power cut would: what it was doing just stops."""
        self._is_troubled = True
        node = self.nodes[name]
        node.is_dead = True
        node.gate.close()
        node.clock.stop_for_good()

    async def stop(self, name: str = "a") -> None:
        """Stop a node gracefully; time passes while it waits for what it runs."""
        node = self.nodes[name]
        stopping = asyncio.create_task(node.engine.stop())
        while not stopping.done():
            await self._come_to_rest(node)
            wake_at = self.clock.next_wake_at
            if not stopping.done() and wake_at is not None:
                self.clock.move_to(wake_at)
        await stopping
        node.is_dead = True
        node.clock.stop_for_good()

    @asynccontextmanager
    async def started(self, name: str = "a") -> AsyncIterator[Engine]:
        """The engine of a node with its own loops at work; let time pass with `pass_time`."""
        node = self.nodes[name]
        await node.engine.start()
        try:
            yield node.engine
        finally:
            if not node.is_dead:
                await self.stop(name)

    async def pass_time(self, span: Span, name: str = "a") -> None:
        """Let time pass for the loops of a started engine, from wake to wake."""
        until = self.now + span_of(span)
        await self._come_to_rest(self.nodes[name])
        while self.now < until:
            self.clock.move_to(min(self.clock.next_wake_at or until, until))
            await self._come_to_rest(self.nodes[name])

    async def _come_to_rest(self, node: Node) -> None:
        """Give everybody their turns until all wait for nothing but the clock."""
        quiet, calls = 0, -1
        while quiet < _QUIET_ROUNDS:
            await asyncio.sleep(0)
            if node.gate.under_way:
                await node.gate.answered()
            quiet, calls = (quiet + 1, calls) if node.gate.calls == calls else (0, node.gate.calls)

    async def restart(self, name: str = "a", **options: Any) -> Node:
        """Kill a node and start it again."""
        if not self.nodes[name].is_dead:
            self.kill(name)
        node = await self.node(name, **options)
        await self.settle()
        return node

    async def down_for(self, span: Span) -> None:
        """All nodes die; they come back that much later."""
        names = [name for name, node in self.nodes.items() if not node.is_dead]
        for name in names:
            self.kill(name)
        self.clock.move_to(self.now + span_of(span))
        for name in names:
            await self.node(name)
        await self.settle()

    @contextmanager
    def store_away(
        self, *verbs: str, after_commit: bool = False, times: int | None = None, nodes: tuple[str, ...] = ()
    ) -> Iterator[Outage]:
        """The store gives no answer to these verbs (or to any): it has not done the step, or it has."""
        self._is_troubled = True
        with ExitStack() as stack:
            chosen = [self.nodes[name] for name in nodes] or self.live
            outages = [stack.enter_context(n.gate.away(*verbs, after_commit=after_commit, times=times)) for n in chosen]
            yield outages[0]

    # Time

    async def advance(self, span: Span) -> None:
        """Let time pass, stopping wherever something is due."""
        until = self.now + span_of(span)
        await self.settle()
        while self.now < until:
            at = min(await self._next_instant(), until)
            self.clock.move_to(at)
            await self.settle()

    async def _next_instant(self) -> datetime:
        now = self.now
        instants = [
            await self.store.next_fire_at(),
            *(until for _, until in await self.store.pauses(1)),
            await self.store.next_due_at(sorted({q for node in self.live for q in node.engine.options.queues})),
            self.clock.next_wake_at,
            *(now + pause for pause in self._pauses if pause < _POLL),
            *(delivery.at + delivery.context.timeout + _OVERRUN for delivery in self.sink.running.values()),
            *await self._far_instants(),
            *await self._alert_instants(),
        ]
        if len(self.live) > 1 and self.sink.running:
            # Word that a run was taken away comes with the beat.
            instants.append(now + _POLL)
        return min((at for at in instants if at is not None and at > now), default=_END_OF_TIME)

    async def _far_instants(self) -> list[datetime | None]:
        """Deadlines; and while nodes are gone that hold something, or the store is away, every second counts."""
        if not (self._is_troubled or self.sink.has_made_wait):
            return []
        held: list[Claimed] = await self.store.lapsed(_END_OF_TIME, 10_000)
        ids = {node.id for node in self.live}
        away = any(node.gate.outages for node in self.live)
        gone = any(one.run.node_id is not None and one.run.node_id not in ids for one in held)
        return [*(one.run.deadline_at for one in held), self.now + _POLL if away or gone else None]

    async def _alert_instants(self) -> list[datetime | None]:
        if not self._hooks:
            return []
        return [alert.due_at for alert in (await self.store.find_alerts(_UNDELIVERED)).items]

    async def settle(self) -> None:
        """Every node does its duties at this instant, until nothing changes any more."""
        for node in self.live:
            node.engine.runner.wake_for_work()
        for _ in range(_MOST_ROUNDS):
            before = self._changes()
            self._pauses = []
            for node in self.live:
                pause = await node.engine.heart.attend()
                # All hearts beat before anybody looks who is gone, so beats may be left out; a failed one comes again.
                if not node.engine.health.available:
                    self._pauses.append(pause)
            for node in self.live:
                self._pauses.append(await node.engine.resumer.attend())
                self._pauses.append(await node.engine.planner.attend())
                await node.engine.runner.run_once()
                self._pauses.append(await node.engine.reaper.attend())
                self._pauses.append(await node.engine.keeper.attend())
                if self._hooks:
                    self._pauses.append(await node.engine.herald.attend())
            await self._attempts_stand_still()
            if self._changes() == before:
                return
        raise AssertionError("the world does not come to rest")

    def _changes(self) -> tuple[int, int, int]:
        gates = [node.gate for node in self.nodes.values()]
        return sum(gate.changes for gate in gates), self.sink.count, sum(n.engine.runner.executing for n in self.live)

    async def _attempts_stand_still(self) -> None:
        deadline = time.monotonic() + _DEADLINE
        while time.monotonic() < deadline:
            await asyncio.sleep(0)
            if all(node.stands_still for node in self.live):
                return
            for node in self.live:
                if node.gate.under_way:
                    # An attempt may ask the store, which takes as long as it takes.
                    await node.gate.answered()
        raise AssertionError("an attempt neither ends nor waits for the clock")

    # What people do

    def spec(
        self,
        *,
        every: Span | None = None,
        cron: str | None = None,
        once: Span | datetime | None = None,
        timezone: str = "UTC",
        start: datetime | None = None,
        end: datetime | None = None,
        jitter: Span = timedelta(0),
        overlap: OverlapRule = OverlapRule.PARALLEL,
        max_concurrency: int = 1,
        misfire: MisfireRule = MisfireRule.FIRE_ONCE,
        catch_up: int = 0,
        timeout: Span = "10s",
        callback: bool = False,
        callback_timeout: Span = "300s",
        **said: Any,
    ) -> JobSpec:
        """What to ask for: a job of the scripted target, in words."""
        self._names += 1
        schedule: Schedule | None = None
        if every is not None:
            schedule = Every(span_of(every), self.now, start, end, span_of(jitter))
        elif cron is not None:
            schedule = CronSchedule(cron, timezone, start, end, span_of(jitter))
        elif once is not None:
            schedule = Once(once if isinstance(once, datetime) else self.now + span_of(once))
        values: dict[str, Any] = {
            "name": f"job {self._names}",
            "target": TargetSpec("script", {"awaits_callback": callback}),
            "schedule": schedule,
            "overlap": Overlap(overlap, max_concurrency),
            "misfire": Misfire(misfire, catch_up),
            "timeouts": Timeouts(total=span_of(timeout), callback=span_of(callback_timeout)),
        }
        return JobSpec(**(values | said))

    async def job(self, *, node: str | None = None, **said: Any) -> Job:
        """A new job, asked for in the words of `spec`."""
        engine = (self.nodes[node] if node else self.main).engine
        job = await engine.jobs.create("test", self.spec(**said))
        await self.settle()
        return job

    async def trigger(self, job: Job, input: bytes | None = None) -> Run:
        """Run a job now; give the run as it is once everybody has done what there is to do."""
        run = await self.main.engine.runs.trigger(job.id, input)
        await self.settle()
        return await self.run(run.id)

    async def change(self, job: Job, **said: Any) -> Job:
        changed = await self.main.engine.jobs.change(job.id, lambda job: msgspec.structs.replace(job, **said))
        await self.settle()
        return changed

    async def pause(self, job: Job, **said: Any) -> Job:
        return await self.main.engine.jobs.pause(job.id, **said)

    async def resume(self, job: Job) -> Job:
        resumed = await self.main.engine.jobs.resume(job.id)
        await self.settle()
        return resumed

    async def cancel(self, run: Run, node: str | None = None) -> Run:
        canceled = await (self.nodes[node] if node else self.main).engine.runs.cancel(run.id)
        await self.settle()
        return canceled

    async def rerun(self, run: Run) -> Run:
        again = await self.main.engine.runs.rerun(run.id)
        await self.settle()
        return again

    async def call_back(self, run: Run, succeeded: bool = True, error: str = "") -> Run:
        assert run.callback_token is not None
        called = await self.main.engine.runs.call_back(run.callback_token, Word(succeeded=succeeded, error=error))
        await self.settle()
        return called

    async def tell(self, run: Run, **said: Any) -> Run:
        """A callback that says how far a run has come."""
        told = await self.main.engine.runs.call_back(run.callback_token or "", Word(**said))
        await self.settle()
        return told

    async def answer(self, run: Run, *outcome: Any) -> None:
        """Let a hanging attempt end."""
        self.sink.answer(run.id, *outcome)
        await self._attempts_stand_still()
        await self.settle()

    # What there is

    async def run(self, run_id: int) -> Run:
        [run] = await self.store.get_runs([run_id])
        return run

    async def get(self, job: Job) -> Job:
        [job] = await self.store.get_jobs([job.id])
        return job

    async def runs(self, job: Job | None = None) -> list[Run]:
        """All runs (of one job), in the order of what they stand for."""
        found: list[Run] = []
        while True:
            query = RunQuery(
                job_id=None if job is None else job.id, before_id=found[-1].id if found else None, limit=1000
            )
            page = await self.store.find_runs(query)
            found += page.items
            if len(page.items) < 1000:
                return sorted(found, key=lambda run: (run.planned_at, run.id))

    async def last_run(self, job: Job) -> Run:
        return (await self.runs(job))[-1]

    async def states(self, job: Job) -> list[State]:
        return [run.state for run in await self.runs(job)]

    async def attempts(self, run: Run) -> list[Attempt]:
        return await self.store.attempts(run.id)

    async def fire_log(self, job: Job) -> list[FireRecord]:
        """What became of each planned instant, oldest first."""
        log = await self.store.fire_log(job.id, datetime(1970, 1, 1, tzinfo=UTC), _END_OF_TIME, 100_000)
        return sorted(log, key=lambda record: record.from_at)

    async def gaps(self, job: Job) -> list[FireRecord]:
        return [record for record in await self.fire_log(job) if record.run_id is None]
