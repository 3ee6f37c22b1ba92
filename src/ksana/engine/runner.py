"""The runner: claims due runs as it has room, executes them, gathers what came of it and stores it in groups.

A claim is committed before anything is sent, and a result counts only if its epoch still stands, so a run is never
executed by two nodes that both believe they hold it, and a late result never overwrites a newer one.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from ksana.domain.errors import StoreUnavailable
from ksana.domain.jobs import Job
from ksana.domain.moves import Move, advance, hand_back, settle
from ksana.domain.outcomes import Outcome, Verdict
from ksana.domain.policies import OverlapRule
from ksana.domain.ports import Claim, Claimed, Clock, Observer, Store, Target
from ksana.domain.runs import Attempt, Run
from ksana.domain.states import Event
from ksana.engine.contexts import Contexts
from ksana.engine.loops import Backoff, StoreHealth

log = logging.getLogger(__name__)

# How long past its timeout an attempt may take to say so before it is cut off.
_OVERRUN = timedelta(seconds=5)


class _Execution:
    """An attempt under way."""

    __slots__ = ("claimed", "is_overrun", "started_at", "task")

    def __init__(self, claimed: Claimed, started_at: datetime) -> None:
        self.claimed = claimed
        self.started_at = started_at
        self.is_overrun = False
        self.task: asyncio.Task[None] | None = None


class Runner:
    """Claim, execute, store the outcome."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        targets: Mapping[str, Target],
        contexts: Contexts,
        health: StoreHealth,
        observers: Sequence[Observer],
        *,
        node_id: int,
        capacity: int,
        queues: tuple[str, ...],
        batch: int,
        poll: timedelta,
    ) -> None:
        self.node_id = node_id
        self.queues = queues
        self._store = store
        self._clock = clock
        self._targets = targets
        self._contexts = contexts
        self._health = health
        self._observers = observers
        self._capacity = capacity
        self._batch = batch
        self._poll = poll
        self._executing: dict[tuple[int, int], _Execution] = {}
        self._results: list[_Result] = []
        self._reserved = 0
        self._turns: set[asyncio.Task[None]] = set()
        self._hungry = True
        self._accepting = True
        self._wake = asyncio.Event()
        self._backoff = Backoff()
        self._pausing = False
        self._next_due_at: datetime | None = None

    # Room

    @property
    def executing(self) -> int:
        """How many attempts are under way."""
        return len(self._executing)

    @property
    def is_idle(self) -> bool:
        """Nothing under way and nothing left to store."""
        return not (self._executing or self._results or self._turns or self._reserved)

    @property
    def room(self) -> int:
        """How many more runs may be taken on. A result not yet stored still takes its place: when the store is slow, the
        runner slows down with it instead of piling results up."""
        return max(0, self._capacity - len(self._executing) - len(self._results) - self._reserved)

    def reserve(self, count: int) -> int:
        """Set room aside for runs about to be born claimed by this node; answer how much there was."""
        granted = min(count, self.room) if self._accepting else 0
        self._reserved += granted
        return granted

    def begin(self, claimed: Sequence[Claimed], reserved: int) -> None:
        """Start attempts on runs this node holds, and give back the room set aside."""
        self._reserved -= reserved
        if not claimed:
            return
        now = self._clock.now()
        for observer in self._observers:
            observer.on_started(claimed, now)
        for one in claimed:
            execution = _Execution(one, now)
            self._executing[_key(one.run)] = execution
            execution.task = asyncio.create_task(self._execute(execution))

    def wake_for_work(self) -> None:
        """There may be runs to claim now."""
        self._hungry = True
        self._wake.set()

    # The pump

    async def run(self) -> None:
        """Turn until stopped and idle."""
        while self._accepting or not self.is_idle:
            self._wake.clear()
            self._start_turns()
            await self._rest()

    async def run_once(self) -> None:
        """Start the turns worth starting and see them through; what they claimed is then under way."""
        self._start_turns()
        if self._turns:
            await asyncio.wait(self._turns)

    def _start_turns(self) -> None:
        while self._is_turn_worthwhile():
            results, self._results = self._results[: self._batch], self._results[self._batch :]
            wanted = self._wanted()
            self._reserved += wanted
            turn = asyncio.create_task(self._turn(results, wanted))
            self._turns.add(turn)
            turn.add_done_callback(self._turn_ended)

    def _is_turn_worthwhile(self) -> bool:
        if self._pausing:
            return False
        wanted = self._wanted()
        if not self._turns:
            return bool(self._results) or wanted > 0
        # While turns are under way, another is worth its commit only if it is full.
        is_full = len(self._results) >= self._batch or wanted >= self._batch
        return is_full and len(self._turns) < self._store.parallelism

    def _wanted(self) -> int:
        return min(self._batch, self.room) if self._hungry and self._accepting else 0

    def _turn_ended(self, turn: asyncio.Task[None]) -> None:
        self._turns.discard(turn)
        self._wake.set()
        if not turn.cancelled() and (error := turn.exception()) is not None:
            log.error("a turn failed and goes on", exc_info=error)

    async def _turn(self, results: list[_Result], wanted: int) -> None:
        now = self._clock.now()
        claim = Claim(node_id=self.node_id, now=now, limit=wanted, queues=self.queues) if wanted else None
        try:
            turn = await self._store.turn([move for move, _ in results], claim)
        except BaseException as error:
            # Whether the store took them is unknown; offering them again is safe, because a move counts only once.
            self._results[:0] = results
            self._reserved -= wanted
            self._pause(error)
            if isinstance(error, StoreUnavailable):
                return
            raise
        self._health.answered()
        self._backoff.reset()
        self.begin(turn.claimed, wanted)
        if len(turn.claimed) < wanted:
            self._hungry = False
            self._next_due_at = await self._next_due()
        self._tell(results, turn.lost, now)

    async def _next_due(self) -> datetime | None:
        try:
            return await self._store.next_due_at(self.queues)
        except StoreUnavailable as error:
            self._health.failed(error)
            return None

    def _pause(self, error: BaseException) -> None:
        if isinstance(error, StoreUnavailable):
            self._health.failed(error)
        self._pausing = True
        asyncio.get_running_loop().call_later(self._backoff.next(), self._resume)

    def _resume(self) -> None:
        self._pausing = False
        self.wake_for_work()

    def _tell(self, results: list[_Result], lost: frozenset[int], now: datetime) -> None:
        if not results:
            return
        kept = [result for result in results if result[0].run.id not in lost] if lost else results
        for observer in self._observers:
            if kept:
                observer.on_moved(kept, now)
            if lost:
                observer.on_lost(lost, now)

    async def _rest(self) -> None:
        """Wait for a result, a free place or word of new work; look again by itself when the next run comes due."""
        pause = self._poll
        if self._next_due_at is not None:
            pause = min(pause, self._next_due_at - self._clock.now())
        try:
            async with asyncio.timeout(max(0.0, pause.total_seconds())):
                await self._wake.wait()
        except TimeoutError:
            self._hungry = True
            self._next_due_at = None

    # Executing

    async def _execute(self, execution: _Execution) -> None:
        claimed = execution.claimed
        try:
            outcome = await self._attempt(claimed)
        except asyncio.CancelledError:
            if not execution.is_overrun:
                # Whoever took the run away has moved it already; there is nothing left to say.
                self._executing.pop(_key(claimed.run), None)
                self._wake.set()
                raise
            outcome = Outcome(
                Verdict.RETRY, error="the target ignored its timeout and was cut off", timed_out=True
            )
        ended_at = self._clock.now()
        self._executing.pop(_key(claimed.run), None)
        self._results.append((_result(claimed, outcome, execution.started_at, ended_at), claimed.job))
        self._wake.set()

    async def _attempt(self, claimed: Claimed) -> Outcome:
        job = claimed.job
        if job is None:
            return Outcome(Verdict.FAIL, error="the run has no job that says what to do")
        target = self._targets.get(job.target.kind)
        if target is None:
            return Outcome(Verdict.RETRY, error=f"no target {job.target.kind!r} is installed on this node")
        try:
            return await target.execute(self._contexts.of(claimed.run, job), job.target.config)
        except Exception as error:
            log.exception("target %s broke its promise not to raise", job.target.kind)
            return Outcome(Verdict.RETRY, error=f"{type(error).__name__}: {error}")

    def cut_overruns(self) -> int:
        """Cut off attempts that went on well past their timeout; a target that hangs costs one place, and not for ever."""
        now = self._clock.now()
        cut = 0
        for execution in list(self._executing.values()):
            job = execution.claimed.job
            limit = _OVERRUN if job is None else job.timeouts.total + _OVERRUN
            if now - execution.started_at > limit and not execution.is_overrun and execution.task is not None:
                execution.is_overrun = True
                execution.task.cancel()
                cut += 1
        return cut

    def let_go(self, run_id: int, epoch: int) -> None:
        """Stop an attempt on a run that somebody else has moved."""
        execution = self._executing.get((run_id, epoch))
        if execution is not None and execution.task is not None:
            execution.task.cancel()

    # Stopping

    async def stop(self, limit: timedelta) -> None:
        """Claim nothing more, wait for what runs up to the limit, hand the rest back, store everything."""
        self._accepting = False
        self._wake.set()
        tasks = [execution.task for execution in self._executing.values() if execution.task is not None]
        if tasks:
            await asyncio.wait(tasks, timeout=limit.total_seconds())
        self._hand_back()
        self._wake.set()

    def _hand_back(self) -> None:
        now = self._clock.now()
        for execution in list(self._executing.values()):
            run, job = execution.claimed.run, execution.claimed.job
            if job is not None:
                move = Move(run.epoch, hand_back(run, job.on_uncertain, now), frees_slot=_frees_slot(job))
                self._results.append((move, job))
            self.let_go(run.id, run.epoch)


_Result = tuple[Move, Job | None]


def _key(run: Run) -> tuple[int, int]:
    return (run.id, run.epoch)


def _frees_slot(job: Job) -> bool:
    return job.overlap.rule is OverlapRule.QUEUE


def _result(claimed: Claimed, outcome: Outcome, started_at: datetime, ended_at: datetime) -> Move:
    run, job = claimed.run, claimed.job
    attempt = Attempt(
        run_id=run.id,
        number=run.attempt,
        epoch=run.epoch,
        node_id=run.node_id,
        started_at=started_at,
        ended_at=ended_at,
        verdict=outcome.verdict,
        timed_out=outcome.timed_out,
        code=outcome.code,
        error=outcome.error,
        result=outcome.result,
        exchange=outcome.exchange,
    )
    if job is None:
        return Move(run.epoch, advance(run, Event.FAIL, ended_at, error=outcome.error), attempt)
    moved = settle(run, job, outcome, ended_at)
    return Move(run.epoch, moved, attempt, frees_slot=moved.ended_at is not None and _frees_slot(job))
