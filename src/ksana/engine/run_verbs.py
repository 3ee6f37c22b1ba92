"""What people and callbacks do to runs: trigger, cancel, rerun, complete, call back."""

from __future__ import annotations

import hmac
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta

import msgspec

from ksana.domain.callbacks import (
    TOKEN_LENGTH,
    CallbackRecord,
    CallbackStatus,
    Heard,
    Judgement,
    Letter,
    Word,
    judge,
    masked_headers,
)
from ksana.domain.claims import Claimed
from ksana.domain.errors import InvalidState, NotFound
from ksana.domain.fires import Draws, admit_manual, new_run
from ksana.domain.idempotency import IdempotencyRecord
from ksana.domain.items import KIND as ITEM
from ksana.domain.jobs import Job
from ksana.domain.moves import Move, advance
from ksana.domain.plans import check_params
from ksana.domain.policies import DEFAULT_CALLBACK_TIMEOUT
from ksana.domain.ports import Clock, Observer, Store, Target
from ksana.domain.runs import Run, Trigger
from ksana.domain.states import Event, Reason, State
from ksana.engine.alerts import Alarm
from ksana.engine.draws import IdPool, OneRun
from ksana.engine.lineage import Lineage
from ksana.engine.recording import Recorder

_TRIES = 20
_BLANK = Letter()


class RunVerbs:
    """Trigger, cancel, rerun, complete, call back."""

    def __init__(
        self,
        store: Store,
        targets: Mapping[str, Target],
        lineage: Lineage,
        clock: Clock,
        ids: IdPool,
        callback_ids: IdPool,
        draws: Draws,
        observers: Sequence[Observer],
        alarm: Alarm,
        wake: Callable[[], None],
        let_go: Callable[[int, int], None],
        token_ttl: timedelta,
        recorder: Recorder,
    ) -> None:
        self._store = store
        self._targets = targets
        self._lineage = lineage
        self._clock = clock
        self._ids = ids
        self._callback_ids = callback_ids
        self._draws = draws
        self._observers = observers
        self._alarm = alarm
        self._wake = wake
        self._let_go = let_go
        self._token_ttl = token_ttl
        self._recorder = recorder

    async def trigger(
        self,
        job_id: int,
        input: bytes | None = None,
        answer: Callable[[Run], IdempotencyRecord] | None = None,
        *,
        apart: bool = False,
        needs_enabled: bool = False,
    ) -> Run:
        """Run a job now, beside its schedule, under its overlap rule or `apart` from it. A paused job may be, too,
        unless `needs_enabled`. What a chain is given are its parameters."""
        draws = OneRun(await self._ids.next(), self._draws)
        now = self._clock.now()
        made_of: list[Job] = []

        def make(job: Job, active: int) -> Run:
            made_of[:] = [job]
            if job.deleted_at is not None:
                raise NotFound(f"there is no job {job_id}")
            if needs_enabled and not job.enabled:
                raise InvalidState(f"{job.target.kind} is disabled: {job.name}")
            check_params(job, input)
            trigger = Trigger.APART if apart else Trigger.MANUAL
            waits = self._awaits_callback(job, input)
            run = new_run(job, draws, now, trigger=trigger, input=input, awaits_callback=waits)
            return run if apart else admit_manual(job, active, run)

        run = await self._store.add_run(job_id, make, answer)
        for observer in self._observers:
            observer.on_changed([], [Claimed(run, made_of[0])], now)
        self._wake()
        await self._recorder.run("run.trigger", None, run)
        return run

    def _awaits_callback(self, job: Job, input: bytes | None) -> bool:
        # A run's input may ask for a callback that its job does not; the token has to be there before anything is sent.
        target = self._targets.get(job.target.kind)
        if input is None or target is None:
            return job.awaits_callback
        return target.awaits_callback(job.target.config, msgspec.json.decode(input))

    async def get(self, run_id: int) -> Run:
        runs = await self._store.get_runs([run_id])
        if not runs:
            raise NotFound(f"there is no run {run_id}")
        return runs[0]

    async def cancel(self, run_id: int) -> Run:
        """End a run that is not over yet. An attempt under way is stopped, on whichever node it runs."""

        def canceled(run: Run, now: datetime) -> Run:
            return advance(run, Event.CANCEL, now, reason=Reason.OPERATOR)

        return await self._move("run.cancel", run_id, canceled)

    async def purge(self, run_id: int, states: frozenset[State]) -> Run:
        """Take an item out of its queue for good, if it still stands as whoever asked for it thought: one that a worker
        has taken meanwhile stays."""

        def purged(run: Run, now: datetime) -> Run:
            if run.kind != ITEM:
                raise InvalidState(f"run {run.id} is no item of a queue")
            if run.state not in states:
                raise InvalidState(f"item {run.id} is {run.state} by now; it stays")
            if run.state is not State.DEAD_LETTER:
                return advance(run, Event.CANCEL, now, reason=Reason.OPERATOR, error=run.error)
            if run.parent_id is not None:
                raise InvalidState(f"item {run.id} is a step of run {run.parent_id}; retry or complete it there")
            return advance(run, Event.DISCARD, now, reason=Reason.OPERATOR, error=run.error)

        return await self._move("run.purge", run_id, purged)

    async def rerun(self, run_id: int) -> Run:
        """Try a run again that has ended without success."""

        def again(run: Run, now: datetime) -> Run:
            return advance(run, Event.RERUN, now, due_at=now, reason=Reason.OPERATOR)

        return await self._move("run.retry", run_id, again)

    async def complete(self, run_id: int, *, reason: str = "", artifact: bytes | None = None) -> Run:
        """Take a run as done that runs, awaits its callback or ended without success, because somebody says so."""

        def done(run: Run, now: datetime) -> Run:
            return advance(run, Event.COMPLETE, now, reason=Reason.OPERATOR, error=reason)

        return await self._move("run.complete", run_id, done, artifact, reason)

    async def by_token(self, token: str) -> Run:
        """The run a callback token belongs to."""
        run = await self._store.run_by_token(token) if len(token) == TOKEN_LENGTH and token.isascii() else None
        # How a store compares is its own business; whether the token is right is decided here, in constant time.
        if run is None or not hmac.compare_digest(run.callback_token or "", token):
            raise NotFound("no run has this callback token")
        return run

    async def call_back(self, token: str, word: Word, letter: Letter = _BLANK) -> Run:
        """The outside world speaks of an asynchronous run. The first word on how it ended counts; whatever comes later
        changes nothing. Callbacks are kept in the ledger. InvalidState if no attempt of the run awaits one."""
        run = await self.by_token(token)
        return await self._hear(run.id, word, letter)

    async def call_back_by_ids(self, job_id: int, run_id: int, word: Word, letter: Letter = _BLANK) -> Run:
        """The same by the ids of job and run, from somebody who is known to be allowed to."""
        run = await self.get(run_id)
        if run.job_id != job_id:
            raise NotFound(f"job {job_id} has no run {run_id}")
        return await self._hear(run_id, word, letter)

    async def _hear(self, run_id: int, word: Word, letter: Letter) -> Run:
        """Judge the callback by the run as it is and store both; if the run moves meanwhile, judge again."""
        callback_id = await self._callback_ids.next()
        for _ in range(_TRIES):
            run = await self.get(run_id)
            job = await self._job_of(run)
            now = self._clock.now()
            judged = await self._judge(run, job, word, now)
            moved = [] if judged.move is None else [(judged.move, job)]
            record = CallbackRecord(
                id=callback_id,
                run_id=run_id,
                received_at=now,
                status=CallbackStatus.IGNORED if judged.ignored else CallbackStatus.RECEIVED,
                note=judged.ignored,
                headers=masked_headers(letter.headers.items()),
                body=letter.body,
            )
            alerts = tuple(self._alarm.of(moved, now))
            heard = Heard(record, judged.move, judged.progress, alerts, tuple(self._alarm.hooks))
            if (followed := await self._store.hear(heard)) is not None:
                return self._heard(run, judged, job, followed, now)
        raise InvalidState(f"run {run_id} moves faster than it can be changed; try again")

    async def _judge(self, run: Run, job: Job | None, word: Word, now: datetime) -> Judgement:
        known = await self._store.progress([run.id])
        patience = DEFAULT_CALLBACK_TIMEOUT if job is None else job.timeouts.callback
        return judge(run, word, now, known=known.get(run.id), patience=patience, token_ttl=self._token_ttl)

    def _heard(
        self, run: Run, judged: Judgement, job: Job | None, followed: list[tuple[Move, Job | None]], now: datetime
    ) -> Run:
        if judged.refused:
            raise InvalidState(f"run {run.id}: {judged.ignored}")
        if judged.move is None:
            return run
        if judged.move.run.state.is_final:
            for observer in self._observers:
                observer.on_moved([(judged.move, job), *followed], now)
            self._wake()
        return judged.move.run

    async def _move(
        self,
        action: str,
        run_id: int,
        change: Callable[[Run, datetime], Run],
        artifact: bytes | None = None,
        reason: str = "",
    ) -> Run:
        """Apply a change to the run as it is; if it moves meanwhile, look again."""
        for _ in range(_TRIES):
            run = await self.get(run_id)
            job = await self._job_of(run)
            now = self._clock.now()
            moved = change(run, now)
            if moved is run:
                return run
            holder = run.node_id if run.state is State.RUNNING else None
            frees_slot = moved.ended_at is not None
            move = Move(run.epoch, moved, frees_slot=frees_slot, taken_from=holder, artifact=artifact)
            turn = await self._store.turn([move], hooks=self._alarm.hooks)
            if not turn.lost:
                self._let_go(run.id, run.epoch)
                for observer in self._observers:
                    observer.on_moved([(move, job), *turn.followed], now)
                self._wake()
                await self._recorder.run(action, run, moved, reason)
                return moved
        raise InvalidState(f"run {run_id} moves faster than it can be changed; try again")

    async def _job_of(self, run: Run) -> Job | None:
        if run.job_id is None:
            return await self._lineage.job_of(run)
        jobs = await self._store.get_jobs([run.job_id])
        return jobs[0] if jobs else None
