"""The runner: claims due runs as it has room, executes them, gathers what came of it and stores it in groups.

A claim is committed before anything is sent, and a result counts only if its epoch still stands, so a run is never
executed by two nodes that both believe they hold it, and a late result never overwrites a newer one.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta

from ksana.domain.claims import Claim, Claimed, Turn
from ksana.domain.errors import StoreUnavailable
from ksana.domain.moves import LONGEST_WAIT
from ksana.domain.policies import OnUncertain
from ksana.domain.ports import Clock, Observer, Store, Target
from ksana.engine.alerts import Alarm
from ksana.engine.attempts import Attempts
from ksana.engine.contexts import Contexts
from ksana.engine.holdings import held_by, moved_on
from ksana.engine.horizon import Horizon
from ksana.engine.lineage import Lineage
from ksana.engine.loops import Backoff, Rests, StoreHealth, ended
from ksana.engine.places import Execution, Places
from ksana.engine.results import Result, done_at_birth, handed_back, overtaken, without_baggage
from ksana.engine.steps import Steps, is_for_steps
from ksana.engine.telling import Teller

log = logging.getLogger(__name__)

_NONE: frozenset[int] = frozenset()

# How many batches of results may wait while slots are being fired.
_PATIENCE = 20

# Which part of a batch of results is worth a commit of its own while another is under way.
_WORTHWHILE = 4

# How many turns' worth of runs are fetched ahead under a backlog: so many that places hardly ever wait for the store,
# and so few that they are done within a fraction of a second.
_AHEAD = 8

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
        self._teller = Teller(observers)
        attempts = self._attempts
        self._places = Places(
            clock,
            self._teller.started,
            attempts.make,
            self._tell_pump,
            capacity,
            begin=attempts.begin,
            foretell=attempts.foretell,
        )
        self._health = health
        self._batch = batch
        self._share = max(1, min(batch, capacity // store.parallelism))
        self._fill = max(self._share, batch // _WORTHWHILE)
        self._poll = poll
        self._on_uncertain = on_uncertain
        self._alarm = alarm or Alarm(())
        self._backlogged = False
        self._pace = 0
        self._storing_later = False
        self._results: list[Result] = []
        self._reserved = 0
        self._turns: set[asyncio.Task[None]] = set()
        self._hungry = True
        self._doubtful = False
        self._piecemeal = 0
        self._accepting = True
        self._draining = False
        self._wake = asyncio.Event()
        self._rests = Rests(clock, self._wake)
        self._horizon = Horizon(store, health, queues, self._wake)
        self._backoff = Backoff()
        self._pausing = False
        self._aside: set[asyncio.Task[None]] = set()

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
        may = self._accepting and not (self._draining or self._hungry or self._doubtful)
        granted = min(count, self.room) if may else 0
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
            self._results += [handed_back(one, OnUncertain.RETRY, now) for one in claimed]
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

    def drain(self, is_draining: bool) -> None:
        """Take on nothing more and end what there is, or take on work again."""
        if is_draining != self._draining:
            self._draining = is_draining
            self.wake_for_work()

    def _tell_pump(self) -> None:
        self._wake.set()

    def wake_for_work(self) -> None:
        """There may be runs to claim now."""
        self._hungry = True
        self._wake.set()

    # The pump

    async def run(self) -> None:
        """Turn until stopped and idle."""
        try:
            while self._accepting or not self.is_idle:
                self._wake.clear()
                if self._is_gathering():
                    await self._clock.sleep(_GATHER)
                self._start_turns()
                await self._rest()
        finally:
            self._rests.stop()
            self._teller.tell()

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
            self._teller.tell()
            self._start_turns()

    def _start_turns(self) -> None:
        if self._doubtful and not (self._pausing or self._turns or self._reserved):
            self._start(self._recover())
        while self._is_turn_worthwhile():
            self._start_turn()

    def _start_turn(self) -> None:
        may_follow = self._settle_ended()
        size = 1 if self._piecemeal else self._batch
        results, self._results = self._results[:size], self._results[size:]
        self._pace = max(len(results), self._pace // 2)
        wanted = self._wanted(may_follow)
        self._reserved += wanted
        self._start(self._turn(results, self._claim(wanted)))

    def _start(self, work: Coroutine[None, None, None]) -> None:
        turn = asyncio.create_task(work)
        self._turns.add(turn)
        turn.add_done_callback(self._turn_ended)

    def _is_turn_worthwhile(self) -> bool:
        # Nothing may be on its way to the store while it is asked what this node holds.
        if self._pausing or self._doubtful:
            return False
        if not self._turns:
            return self._storable > 0 or self._wanted() > 0
        # While turns are under way, another is worth its commit only if it is well filled, or places stand empty.
        return len(self._turns) < self._store.parallelism and self._is_well_filled()

    def _is_well_filled(self) -> bool:
        fill = self._fill if self._places.has_line else self._share
        return self._storable >= fill or self._wanted() >= fill

    @property
    def _storable(self) -> int:
        """How many results are to be stored, unless they had better wait."""
        results = self._to_store
        return 0 if self._storing_later and results < _PATIENCE * self._batch else results

    def _wanted(self, may_follow: bool = False) -> int:
        if not (self._hungry or may_follow) or not self._accepting or self._draining or self._piecemeal:
            return 0
        # While there is known to be more than enough to do, runs are fetched ahead at the pace they come to an end:
        # with quick targets the places never wait for the store, with slow ones nothing is held that others could do.
        ahead = min(self._batch, _AHEAD * self._pace) if self._backlogged else 0
        held = len(self._places.held) + self._reserved + self._piled_up()
        return max(0, min(self._batch, self._places.capacity + ahead - held))

    def _claim(self, wanted: int) -> Claim | None:
        """Ask for whatever is due if there may be something, else only for what the results of this turn let in."""
        if not wanted:
            return None
        return Claim(
            node_id=self.node_id,
            now=self._clock.now(),
            limit=wanted,
            queues=self.queues,
            for_followers=not self._hungry,
        )

    def _turn_ended(self, turn: asyncio.Task[None]) -> None:
        self._turns.discard(turn)
        self._wake.set()
        if not turn.cancelled() and (error := turn.exception()) is not None:
            log.error("a turn failed and goes on", exc_info=error)

    async def _turn(self, results: list[Result], claim: Claim | None) -> None:
        now = self._clock.now() if claim is None else claim.now
        wanted = 0 if claim is None else claim.limit
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
        self._horizon.look_forward(results)
        self._learn_from(turn, claim)
        self._take_turns()
        self.begin(claimed, wanted)
        self._teller.moved(results, turn.lost, now)
        self._teller.moved([*done_at_birth(results, turn.lost), *turn.followed], _NONE, now)
        if turn.lost:
            await self._keep_overtaken(results, turn.lost)

    def _take_turns(self) -> None:
        """Have the store at work again before what it has just given is begun, which may take as long as its turn."""
        # The turn that ends is still counted.
        has_room = len(self._turns) <= self._store.parallelism
        if has_room and not (self._pausing or self._doubtful) and self._is_well_filled():
            self._start_turn()

    def _learn_from(self, turn: Turn, claim: Claim | None) -> None:
        """Whether there is more to claim, from what this turn has found."""
        claimed = len(turn.claimed)
        if claim is None or claim.for_followers:
            is_full = claim is not None and claimed == claim.limit
            if turn.admitted > claimed or is_full:
                self.wake_for_work()
            return
        self._backlogged = claimed == claim.limit
        if not self._backlogged:
            self._hungry = False
            self._horizon.is_known = False

    async def _keep_overtaken(self, results: list[Result], lost: frozenset[int]) -> None:
        """What a target answered after the callback had come decides nothing any more, and is kept to be seen."""
        if attempts := overtaken(results, lost):
            try:
                await self._store.add_attempts(attempts)
            except StoreUnavailable as error:
                self._health.failed(error)

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

    def _suspected(self, results: list[Result]) -> list[Result]:
        """What to offer again after the store choked on results: one by one, and the culprit without its baggage."""
        if len(results) != 1:
            self._piecemeal = len(results)
            return results
        if (bare := without_baggage(results[0])) is not None:
            return [bare]
        log.error("what came of run %d cannot be stored; it will be found and tried again", results[0][0].run.id)
        self._piecemeal = max(0, self._piecemeal - 1)
        return []

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

    async def _rest(self) -> None:
        """Wait for a result, a free place or word of new work; look again by itself when the next run comes due."""
        # A turn that claims will tell itself whether there is more, or that nobody knows.
        if not self._horizon.is_known and not self._reserved:
            # Attempts that end at once have ended by now, and what follows from them comes first.
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            if self._wake.is_set():
                return
            self._start_aside(self._horizon.learn())
        due_at = self._horizon.next_due_at
        pause = self._poll if due_at is None else min(self._poll, due_at - self._clock.now())
        # The alarm rings however often the runner is woken: others bring work about without a word to this node.
        if await self._rests.rest(pause):
            self._hungry = True
            self._horizon.next_due_at = None

    def _settle_ended(self) -> bool:
        """Decide where the runs go whose attempts have ended, and answer whether others may follow them in a chain. All
        of a turn are settled at one instant, so that most of them move alike and the store can move them together; the
        attempts keep the instant they really ended."""
        ended, self._places.ended = self._places.ended, []
        if not ended:
            return False
        now = self._clock.now()
        judge = self._attempts.judge
        self._results += [(judge(execution, now), execution.claimed.job) for execution in ended]
        return any(is_for_steps(execution.claimed.run) for execution in ended)

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
        resting = asyncio.create_task(self._places.come_to_rest())
        await ended(self._clock, [resting], limit)
        resting.cancel()
        self._hand_back(list(self._places.held.values()))
        self._wake.set()

    def _hand_back(self, executions: Sequence[Execution], doubt: OnUncertain | None = None) -> None:
        """Give runs up that this node holds. Where nothing was sent there is no doubt, whatever the job says of it."""
        now = self._clock.now()
        for execution in executions:
            claimed = execution.claimed
            own = OnUncertain.RETRY if claimed.job is None else claimed.job.on_uncertain
            on_uncertain = doubt or own or self._on_uncertain
            self._results.append(handed_back(claimed, on_uncertain, now))
            self._places.let_go(execution.key)
