"""The runner: claims due runs as it has room, executes them, gathers what came of it and stores it in groups.

A claim is committed before anything is sent, and a result counts only if its epoch still stands, so a run is never
executed by two nodes that both believe they hold it, and a late result never overwrites a newer one.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta

import msgspec

from ksana.domain.errors import StoreUnavailable
from ksana.domain.jobs import Job
from ksana.domain.moves import LONGEST_WAIT, Move, hand_back
from ksana.domain.policies import OnUncertain
from ksana.domain.ports import Claim, Claimed, Clock, Observer, Store, Target
from ksana.domain.states import State
from ksana.engine.alerts import Alarm
from ksana.engine.attempts import Attempts
from ksana.engine.contexts import Contexts
from ksana.engine.holdings import held_by, moved_on
from ksana.engine.lineage import Lineage
from ksana.engine.loops import Backoff, StoreHealth, ended, rest
from ksana.engine.places import Execution, Places
from ksana.engine.steps import Steps, is_for_steps

log = logging.getLogger(__name__)

_replace = msgspec.structs.replace

_NONE: frozenset[int] = frozenset()

# How many batches of results may wait while slots are being fired.
_PATIENCE = 20

# How long results may wait for company under a backlog.
_GATHER = timedelta(milliseconds=3)


class Runner:
    """Claim, execute, store the outcome."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        targets: Mapping[str, Target],
        contexts: Contexts,
        steps: Steps,
        lineage: Lineage,
        health: StoreHealth,
        observers: Sequence[Observer],
        *,
        node_id: int,
        capacity: int,
        queues: tuple[str, ...],
        batch: int,
        poll: timedelta,
        token_ttl: timedelta = LONGEST_WAIT,
        on_uncertain: OnUncertain = OnUncertain.RETRY,
        alarm: Alarm | None = None,
    ) -> None:
        self.node_id = node_id
        self.queues = queues
        self._store = store
        self._clock = clock
        self._lineage = lineage
        self._attempts = Attempts(targets, contexts, steps, token_ttl)
        self._places = Places(clock, observers, self._attempts.make, self._tell_pump, capacity)
        self._health = health
        self._observers = observers
        self._batch = batch
        self._fill = max(1, min(batch, capacity // store.parallelism))
        self._poll = poll
        self._on_uncertain = on_uncertain
        self._alarm = alarm or Alarm(())
        self._backlogged = False
        self._pace = 0
        self._storing_later = False
        self._results: list[_Result] = []
        self._reserved = 0
        self._turns: set[asyncio.Task[None]] = set()
        self._hungry = True
        self._doubtful = False
        self._piecemeal = 0
        self._accepting = True
        self._wake = asyncio.Event()
        self._backoff = Backoff()
        self._pausing = False
        self._aside: set[asyncio.Task[None]] = set()
        self._next_due_at: datetime | None = None
        self._is_due_known = True

    # Room

    @property
    def executing(self) -> int:
        """How many attempts are under way."""
        return self._places.executing

    @property
    def is_idle(self) -> bool:
        """Nothing under way and nothing left to store."""
        places = self._places
        return not (places.held or places.ended or self._results or self._turns or self._reserved)

    @property
    def room(self) -> int:
        """How many more runs may be taken on. Results beyond what one turn stores still take their places: when the
        store is slow, the runner slows down with it instead of piling results up."""
        return max(0, self._places.capacity - len(self._places.held) - self._reserved - self._piled_up())

    def _piled_up(self) -> int:
        patience = _PATIENCE if self._storing_later else 1
        return max(0, self._to_store - patience * self._batch)

    @property
    def _to_store(self) -> int:
        return len(self._places.ended) + len(self._results)

    def reserve(self, count: int) -> int:
        """Set room aside for runs about to be born claimed by this node; answer how much there was.

        There is none while older runs may be waiting to be claimed: the newborn get in line, so that who goes first is
        decided by priority and due instant alone.
        """
        granted = min(count, self.room) if self._accepting and not self._hungry and not self._doubtful else 0
        self._reserved += granted
        return granted

    def begin(self, claimed: Sequence[Claimed], reserved: int) -> None:
        """Start attempts on runs this node holds, and give back the room set aside."""
        self._reserved -= reserved
        if not claimed:
            return
        if not self._accepting:
            now = self._clock.now()
            # Claimed while the node was told to stop: nothing was sent, so there is no doubt about them.
            self._results += [(_handed_back(one, OnUncertain.RETRY, now), one.job) for one in claimed]
            return
        self._places.take(claimed)

    def give_back(self, reserved: int) -> None:
        """Room was set aside for runs that may or may not have been born: the store did not say."""
        self._reserved -= reserved
        if reserved:
            self.doubt()

    @contextmanager
    def storing_later(self) -> Iterator[None]:
        """Let results wait, within bounds, while slots are being fired: starting on time comes before book-keeping."""
        self._storing_later = True
        try:
            yield
        finally:
            self._storing_later = False
            self._wake.set()

    def doubt(self) -> None:
        """What this node holds may not be what it thinks it holds; it asks before it takes on more."""
        self._doubtful = True
        self._wake.set()

    def _tell_pump(self) -> None:
        self._wake.set()

    def wake_for_work(self) -> None:
        """There may be runs to claim now."""
        self._hungry = True
        self._wake.set()

    # The pump

    async def run(self) -> None:
        """Turn until stopped and idle."""
        while self._accepting or not self.is_idle:
            self._wake.clear()
            if self._is_gathering():
                await self._clock.sleep(_GATHER)
            self._start_turns()
            await self._rest()

    def _is_gathering(self) -> bool:
        """Whether results had better wait for company: under a backlog, with the next runs already at hand, a moment
        more costs nobody anything and saves a commit."""
        few = 0 < self._to_store < self._fill
        return few and self._backlogged and self._places.has_line and not self._turns and self._accepting

    async def run_once(self) -> None:
        """Start the turns worth starting and see them through, until none is; what they claimed is then under way."""
        self._start_turns()
        while self._turns:
            await asyncio.wait(self._turns)
            self._start_turns()

    def _start_turns(self) -> None:
        if self._doubtful and not (self._pausing or self._turns or self._reserved):
            self._start(self._recover())
        while self._is_turn_worthwhile():
            self._settle_ended()
            size = 1 if self._piecemeal else self._batch
            results, self._results = self._results[:size], self._results[size:]
            self._pace = max(len(results), self._pace // 2)
            wanted = self._wanted()
            self._reserved += wanted
            self._start(self._turn(results, wanted))

    def _start(self, work: Coroutine[None, None, None]) -> None:
        turn = asyncio.create_task(work)
        self._turns.add(turn)
        turn.add_done_callback(self._turn_ended)

    def _is_turn_worthwhile(self) -> bool:
        # Nothing may be on its way to the store while it is asked what this node holds.
        if self._pausing or self._doubtful:
            return False
        wanted = self._wanted()
        results = self._to_store
        if self._storing_later and results < _PATIENCE * self._batch:
            results = 0
        if not self._turns:
            return results > 0 or wanted > 0
        # While turns are under way, another is worth its commit only if it is well filled.
        is_full = results >= self._fill or wanted >= self._fill
        return is_full and len(self._turns) < self._store.parallelism

    def _wanted(self) -> int:
        if not self._hungry or not self._accepting or self._piecemeal:
            return 0
        # While there is known to be more than enough to do, runs are fetched ahead at the pace they come to an end:
        # with quick targets the places never wait for the store, with slow ones nothing is held that others could do.
        ahead = min(self._batch, 3 * self._pace) if self._backlogged else 0
        held = len(self._places.held) + self._reserved + self._piled_up()
        return max(0, min(self._batch, self._places.capacity + ahead - held))

    def _turn_ended(self, turn: asyncio.Task[None]) -> None:
        self._turns.discard(turn)
        self._wake.set()
        if not turn.cancelled() and (error := turn.exception()) is not None:
            log.error("a turn failed and goes on", exc_info=error)

    async def _turn(self, results: list[_Result], wanted: int) -> None:
        now = self._clock.now()
        claim = Claim(node_id=self.node_id, now=now, limit=wanted, queues=self.queues) if wanted else None
        try:
            turn = await self._store.turn(
                [move for move, _ in results], claim, self._alarm.of(results, now), self._alarm.hooks
            )
            claimed = await self._lineage.with_jobs(turn.claimed)
        except BaseException as error:
            # Whether the store took them is unknown; offering them again is safe, because a move counts only once.
            self._results[:0] = results if isinstance(error, StoreUnavailable) else self._suspected(results)
            self.give_back(wanted)
            self._pause(error)
            if isinstance(error, StoreUnavailable):
                return
            raise
        self._health.answered()
        self._backoff.reset()
        self._piecemeal = max(0, self._piecemeal - 1)
        self.begin(claimed, wanted)
        self._look_forward(results)
        if turn.admitted and not wanted:
            self.wake_for_work()
        if wanted:
            self._backlogged = len(claimed) == wanted
        if len(claimed) < wanted:
            self._hungry = False
            self._is_due_known = False
        self._tell(results, turn.lost, now)
        if turn.followed:
            self._tell(turn.followed, _NONE, now)
        if turn.lost:
            await self._keep_overtaken(results, turn.lost)

    async def _keep_overtaken(self, results: list[_Result], lost: frozenset[int]) -> None:
        """What a target answered after the callback had come decides nothing any more, and is kept to be seen."""
        overtaken = [move.attempt for move, _ in results if move.run.id in lost and move.run.callback_token is not None]
        if attempts := [attempt for attempt in overtaken if attempt is not None]:
            try:
                await self._store.add_attempts(attempts)
            except StoreUnavailable as error:
                self._health.failed(error)

    def _look_forward(self, results: list[_Result]) -> None:
        """Be there when a run that is tried again comes due."""
        again = [move.run.due_at for move, _ in results if move.run.state is State.RETRYING]
        if self._next_due_at is not None:
            again.append(self._next_due_at)
        self._next_due_at = min(again, default=None)

    async def _learn_next_due(self) -> None:
        """Ask when there will be something to claim, if that is not known; most often more work comes before."""
        self._is_due_known = True
        try:
            due_at = await self._store.next_due_at(self.queues)
        except StoreUnavailable as error:
            self._health.failed(error)
            return
        if due_at is not None and (self._next_due_at is None or due_at < self._next_due_at):
            self._next_due_at = due_at
            self._wake.set()

    def _pause(self, error: BaseException) -> None:
        if isinstance(error, StoreUnavailable):
            self._health.failed(error)
        self._pausing = True
        self._start_aside(self._resume_after(self._backoff.next()))

    def _start_aside(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work)
        # A task that nobody holds may be collected before it ends.
        self._aside.add(task)
        task.add_done_callback(self._aside.discard)

    async def _resume_after(self, pause: timedelta) -> None:
        await self._clock.sleep(pause)
        self._pausing = False
        self.wake_for_work()

    def _suspected(self, results: list[_Result]) -> list[_Result]:
        """What to offer again after the store choked on results: one by one, and the culprit without its baggage."""
        if len(results) != 1:
            self._piecemeal = len(results)
            return results
        [(move, job)] = results
        if (attempt := move.attempt) is None:
            log.error("what came of run %d cannot be stored; it will be found and tried again", move.run.id)
            self._piecemeal = max(0, self._piecemeal - 1)
            return []
        said = f"the outcome ({attempt.verdict}) could not be stored; see the log of the node"
        return [(Move(move.epoch, _replace(move.run, error=said), None, move.frees_slot, move.taken_from), job)]

    async def _recover(self) -> None:
        """Ask the store what this node holds: begin what it did not know of, let go of what is no longer its own."""
        try:
            held = await held_by(self._store, self.node_id)
            over = await moved_on(self._store, self._places.held)
            held = await self._lineage.with_jobs(held)
        except BaseException as error:
            self._pause(error)
            if isinstance(error, StoreUnavailable):
                return
            raise
        self._health.answered()
        self._backoff.reset()
        self._doubtful = False
        known = {*self._places.held, *((move.run.id, move.epoch) for move, _ in self._results)}
        known.update(execution.key for execution in self._places.ended)
        self.begin([one for one in held if (one.run.id, one.run.epoch) not in known], 0)
        for key in over:
            self._places.let_go(key)

    def _tell(self, results: list[_Result], lost: frozenset[int], now: datetime) -> None:
        if not results:
            return
        self._places.tell_started()
        kept = [result for result in results if result[0].run.id not in lost] if lost else results
        for observer in self._observers:
            if kept:
                observer.on_moved(kept, now)
            if lost:
                observer.on_lost(lost, now)

    async def _rest(self) -> None:
        """Wait for a result, a free place or word of new work; look again by itself when the next run comes due."""
        # A turn that claims will tell itself whether there is more, or that nobody knows.
        if not self._is_due_known and not self._reserved:
            # Attempts that end at once have ended by now, and what follows from them comes first.
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            if self._wake.is_set():
                return
            self._start_aside(self._learn_next_due())
        pause = self._poll
        if self._next_due_at is not None:
            pause = min(pause, self._next_due_at - self._clock.now())
        if await rest(self._clock, self._wake, pause):
            self._hungry = True
            self._next_due_at = None

    def _settle_ended(self) -> None:
        """Decide where the runs go whose attempts have ended. All of a turn are settled at one instant, so that most of
        them move alike and the store can move them together; the attempts keep the instant they really ended."""
        if ended := self._places.ended:
            self._places.ended = []
            now = self._clock.now()
            judge = self._attempts.judge
            self._results += [(judge(execution, now), execution.claimed.job) for execution in ended]
            if any(is_for_steps(execution.claimed.run) for execution in ended):
                # What follows in the chain is claimed in the same turn.
                self._hungry = True

    def cut_overruns(self) -> int:
        """Cut off attempts that went on well past their timeout; answer how many."""
        return self._places.cut_overruns()

    def let_go(self, run_id: int, epoch: int) -> None:
        """Stop an attempt on a run that somebody else has moved."""
        self._places.let_go((run_id, epoch))

    # Stopping

    async def stop(self, limit: timedelta) -> None:
        """Claim nothing more, wait for what runs up to the limit, hand the rest back, store everything."""
        self._accepting = False
        self._hand_back(self._places.waiting, OnUncertain.RETRY)
        self._wake.set()
        await ended(self._clock, self._places.at_work, limit)
        self._hand_back(list(self._places.held.values()))
        self._wake.set()

    def _hand_back(self, executions: Sequence[Execution], doubt: OnUncertain | None = None) -> None:
        """Give runs up that this node holds. Where nothing was sent there is no doubt, whatever the job says of it."""
        now = self._clock.now()
        for execution in executions:
            claimed = execution.claimed
            own = OnUncertain.RETRY if claimed.job is None else claimed.job.on_uncertain
            on_uncertain = doubt or own or self._on_uncertain
            self._results.append((_handed_back(claimed, on_uncertain, now), claimed.job))
            self._places.let_go(execution.key)


_Result = tuple[Move, Job | None]


def _handed_back(claimed: Claimed, on_uncertain: OnUncertain, now: datetime) -> Move:
    moved = hand_back(claimed.run, on_uncertain, now)
    return Move(claimed.run.epoch, moved, frees_slot=moved.ended_at is not None)
