"""The engine of one node: its loops, and the verbs by which surfaces change jobs and runs.

There is no leader. Every node plans, runs and reaps; the store decides who wins, row by row.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta

import msgspec

from ksana.domain.errors import InvalidState, StoreUnavailable
from ksana.domain.fires import Lateness
from ksana.domain.moves import LONGEST_WAIT
from ksana.domain.nodes import NodeInfo
from ksana.domain.policies import OnUncertain
from ksana.domain.ports import Clock, Hook, Observer, Store, Target
from ksana.domain.runs import DEFAULT_QUEUE
from ksana.engine.alerts import Alarm, Herald
from ksana.engine.auditing import Auditor
from ksana.engine.backfilling import BackfillVerbs
from ksana.engine.branching import Brancher
from ksana.engine.chain_verbs import ChainVerbs
from ksana.engine.clock import ClockWatch, SystemClock
from ksana.engine.contexts import Contexts
from ksana.engine.draws import IdPool, SystemDraws
from ksana.engine.feed import Feed, Topic
from ksana.engine.governing import Governor
from ksana.engine.heart import Heart
from ksana.engine.job_verbs import JobVerbs
from ksana.engine.keeper import Keeper, Upkeep
from ksana.engine.lineage import Lineage
from ksana.engine.lookout import Lookout
from ksana.engine.loops import StoreHealth, ended
from ksana.engine.node_verbs import NodeVerbs
from ksana.engine.operations import Operation, Operations
from ksana.engine.planner import Planner
from ksana.engine.queue_verbs import QueueVerbs
from ksana.engine.queue_worker import QueueWorker
from ksana.engine.reaper import Reaper
from ksana.engine.recording import Recorder
from ksana.engine.resumer import Resumer
from ksana.engine.run_verbs import RunVerbs
from ksana.engine.runner import Runner
from ksana.engine.steps import Steps

log = logging.getLogger(__name__)

# How long a stopping node tries to store what came of its last attempts, and waits for a beat under way.
_STORING = timedelta(seconds=15)
_BEATING = timedelta(seconds=1)


class EngineOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How a node behaves."""

    name: str = "ksana"
    workers: int = 4
    queues: tuple[str, ...] = (DEFAULT_QUEUE,)
    batch: int = 500
    foresees_from: int = 50
    """How many slots must come due at the same instant for their runs to be worked out before it."""
    poll: timedelta = timedelta(seconds=1)
    lease: timedelta = timedelta(seconds=10)
    max_reclaims: int = 3
    on_uncertain: OnUncertain = OnUncertain.RETRY
    """What becomes of a run whose worker vanished, if its job does not say."""
    grace: timedelta = timedelta(seconds=10)
    lateness: Lateness = Lateness()
    upkeep: Upkeep = Upkeep()
    callback_base: str = ""
    token_ttl: timedelta = LONGEST_WAIT


class Engine:
    """One node at work."""

    def __init__(
        self,
        store: Store,
        targets: Mapping[str, Target],
        options: EngineOptions | None = None,
        *,
        clock: Clock | None = None,
        ticks: Callable[[], float] = time.monotonic,
        observers: Sequence[Observer] = (),
        hooks: Sequence[Hook] = (),
    ) -> None:
        self.store = store
        self.targets = targets
        self.options = options or EngineOptions()
        self.clock = clock or SystemClock()
        self.feed = Feed(self.clock)
        self.lookout = Lookout(self.feed, store, self.clock)
        self.operations = Operations(self.clock, self._tell_operation)
        observers = [*observers, self.feed]
        self.health = StoreHealth(observers)
        self._ticks = ticks
        self._observers = observers
        self._hooks = hooks
        self._alarm = Alarm([hook.name for hook in hooks])
        self._job_ids = IdPool(store, "job")
        self._run_ids = IdPool(store, "run")
        self._tasks: list[asyncio.Task[None]] = []
        self.auditor = Auditor(IdPool(store, "audit"))
        recorder = Recorder(store, self.clock, self.auditor)
        self.jobs = JobVerbs(
            store,
            targets,
            self.clock,
            self._job_ids,
            SystemDraws(self._run_ids),
            observers,
            self.wake,
            recorder,
            self._wake_resumer,
        )
        self._lineage = Lineage(store)
        self.runs = RunVerbs(
            store,
            targets,
            self._lineage,
            self.clock,
            self._run_ids,
            IdPool(store, "callback"),
            SystemDraws(self._run_ids),
            observers,
            self._alarm,
            self.wake,
            self._let_go,
            self.options.token_ttl,
            recorder,
        )
        self.chains = ChainVerbs(
            store, self.clock, self.runs, observers, self._alarm, self._wake_all, self._let_go, recorder
        )
        self.backfill = BackfillVerbs(
            store, self.clock, self._run_ids, SystemDraws(self._run_ids), observers, self.wake, recorder
        )
        self.queue = QueueVerbs(
            store, self.clock, self._run_ids, observers, self._alarm, self.auditor, recorder, self.chains.put_back
        )
        self.governor = Governor(store, self.clock, self.auditor, self.queue.tell_all)
        self.nodes = NodeVerbs(store, recorder)
        self.workers: list[QueueWorker] = []
        """Those who work for queues beside this node, and rest when it drains."""
        self.node: NodeInfo | None = None

    async def join(self) -> None:
        """Become a node of the store: from here on runs can be held."""
        options, clock, store = self.options, self.clock, self.store
        identity = await store.identity()
        if identity < 0:
            raise InvalidState("this store is a copy that was cut short; repeat `ksana store copy`, it goes on there")
        now = clock.now()
        self.node = node = await store.join(options.name, now, options.lease)
        self.lookout.node_id = node.id
        self.runner = self._make_runner(node, identity)
        self.planner = Planner(
            store,
            clock,
            self.runner,
            self._run_ids,
            self.health,
            self._observers,
            batch=options.batch,
            foresees_from=options.foresees_from,
            lateness=options.lateness,
            poll=options.poll,
        )
        self.reaper = self._make_reaper()
        self.keeper = Keeper(
            store, clock, self.runner, self.health, upkeep=options.upkeep, poll=options.poll, alarm=self._alarm
        )
        self.resumer = Resumer(store, clock, self.jobs, self.health)
        self.herald = Herald(store, clock, self.health, self._hooks, options.poll)
        self.heart = Heart(
            store,
            clock,
            self.runner,
            self.health,
            self._observers,
            node=node,
            lease=options.lease,
            poll=options.poll,
            watch=ClockWatch(self._ticks),
            on_clock_jump=self._on_clock_jump,
            on_drain=self._on_drain,
        )

    def _make_runner(self, node: NodeInfo, identity: int) -> Runner:
        options = self.options
        contexts = Contexts(identity, options.callback_base)
        brancher = Brancher(self.store, self.targets, self.clock, self._run_ids, SystemDraws(self._run_ids))
        return Runner(
            self.store,
            self.clock,
            self.targets,
            contexts,
            Steps(self.store, self.targets, contexts, self._lineage, brancher),
            self._lineage,
            self.health,
            self._observers,
            node_id=node.id,
            capacity=options.workers,
            queues=options.queues,
            batch=options.batch,
            poll=options.poll,
            token_ttl=options.token_ttl,
            on_uncertain=options.on_uncertain,
            alarm=self._alarm,
        )

    def _make_reaper(self) -> Reaper:
        options = self.options
        return Reaper(
            self.store,
            self.clock,
            self.runner,
            self._lineage,
            self.chains,
            self.health,
            self._observers,
            lease=options.lease,
            max_reclaims=options.max_reclaims,
            on_uncertain=options.on_uncertain,
            poll=options.poll,
            watch=ClockWatch(self._ticks),
            alarm=self._alarm,
        )

    async def start(self) -> None:
        """Join, unless that has happened, and set the loops going."""
        if self.node is None:
            await self.join()
        duties = [self.heart.run(), self.planner.run(), self.runner.run(), self.reaper.run(), self.keeper.run()]
        duties.append(self.resumer.run())
        if self._hooks:
            duties.append(self.herald.run())
        self._tasks = [asyncio.create_task(duty) for duty in duties]

    async def stop(self) -> None:
        """Stop planning and claiming, wait for what runs up to the grace period, hand the rest back, leave."""
        self.feed.close()
        await self.operations.stop()
        await self.lookout.stop()
        if self.node is None:
            return
        self.planner.stop()
        self.reaper.stop()
        self.keeper.stop()
        self.resumer.stop()
        self.herald.stop()
        await self.runner.stop(self.options.grace)
        # The heart goes on meanwhile: what ran must not be taken away while its outcome is being stored.
        beating, working = self._tasks[:1], self._tasks[1:] or [asyncio.create_task(self.runner.run())]
        is_done = await ended(self.clock, working, _STORING)
        self.heart.stop()
        is_done &= await ended(self.clock, beating, _BEATING)
        for task in [*beating, *working]:
            task.cancel()
        if is_done:
            await self._leave()
        self.node = None

    async def _leave(self) -> None:
        try:
            await self.store.leave(self.runner.node_id)
        except StoreUnavailable as error:
            log.warning("left without saying so, the lease will lapse: %s", error)

    @property
    def executing(self) -> int:
        """How many attempts are under way on this node."""
        return 0 if self.node is None else self.runner.executing

    async def check_store(self) -> None:
        """Return if the store answers and the work of this node goes on, else raise StoreUnavailable."""
        await self.store.ping()
        if not self.health.available:
            raise StoreUnavailable(self.health.error)

    def wake(self) -> None:
        """Something changed that may be due at once."""
        if self.node is not None:
            self.planner.wake()
            self.runner.wake_for_work()

    def _wake_resumer(self) -> None:
        if self.node is not None:
            self.resumer.wake()

    def _wake_all(self) -> None:
        """The same, and there may be something to halt."""
        self.wake()
        if self.node is not None:
            self.reaper.wake()

    def _tell_operation(self, operation: Operation) -> None:
        self.feed.say(Topic.OPERATION, operation.id, operation, self.clock.now())

    def _let_go(self, run_id: int, epoch: int) -> None:
        if self.node is not None:
            self.runner.let_go(run_id, epoch)

    def _on_drain(self, is_draining: bool) -> None:
        self.runner.drain(is_draining)
        for worker in self.workers:
            worker.drain(is_draining)

    def _on_clock_jump(self) -> None:
        self.reaper.be_patient()
        self.wake()
        self._wake_resumer()
