"""What people and callbacks do to runs: trigger, cancel, rerun, call back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

from ksana.domain.errors import InvalidState, NotFound
from ksana.domain.fires import Draws, admit_manual, new_run
from ksana.domain.idempotency import IdempotencyRecord
from ksana.domain.jobs import Job
from ksana.domain.moves import Move, advance, call_back
from ksana.domain.ports import Clock, Observer, Store
from ksana.domain.runs import Run, Trigger
from ksana.domain.states import Event, Reason, State
from ksana.engine.draws import IdPool, OneRun

_TRIES = 20


class RunVerbs:
    """Trigger, cancel, rerun, call back."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        ids: IdPool,
        draws: Draws,
        observers: Sequence[Observer],
        wake: Callable[[], None],
        let_go: Callable[[int, int], None],
    ) -> None:
        self._store = store
        self._clock = clock
        self._ids = ids
        self._draws = draws
        self._observers = observers
        self._wake = wake
        self._let_go = let_go

    async def trigger(
        self,
        job_id: int,
        input: bytes | None = None,
        answer: Callable[[Run], IdempotencyRecord] | None = None,
    ) -> Run:
        """Run a job now, beside its schedule, under its overlap rule; a paused job may be triggered."""
        draws = OneRun(await self._ids.next(), self._draws)
        now = self._clock.now()

        def make(job: Job, active: int) -> Run:
            if job.deleted_at is not None:
                raise NotFound(f"there is no job {job_id}")
            run = new_run(job, draws, now, trigger=Trigger.MANUAL, input=input)
            return admit_manual(job, active, run)

        run = await self._store.add_run(job_id, make, answer)
        self._wake()
        return run

    async def get(self, run_id: int) -> Run:
        runs = await self._store.get_runs([run_id])
        if not runs:
            raise NotFound(f"there is no run {run_id}")
        return runs[0]

    async def cancel(self, run_id: int) -> Run:
        """End a run that is not over yet. An attempt under way is stopped, on whichever node it runs."""

        def canceled(run: Run, now: datetime) -> Run:
            return advance(run, Event.CANCEL, now, reason=Reason.OPERATOR)

        return await self._move(run_id, canceled)

    async def rerun(self, run_id: int) -> Run:
        """Try a run again that has ended without success."""

        def again(run: Run, now: datetime) -> Run:
            return advance(run, Event.RERUN, now, due_at=now, reason=Reason.OPERATOR)

        return await self._move(run_id, again)

    async def call_back(self, token: str, succeeded: bool, error: str = "") -> Run:
        """The outside world says how an asynchronous run ended. The first word counts; later ones change nothing."""
        run = await self._store.run_by_token(token)
        if run is None:
            raise NotFound("no run has this callback token")

        def called_back(run: Run, now: datetime) -> Run:
            return run if run.state.is_final else call_back(run, succeeded, now, error)

        return await self._move(run.id, called_back)

    async def _move(self, run_id: int, change: Callable[[Run, datetime], Run]) -> Run:
        """Apply a change to the run as it is; if it moves meanwhile, look again."""
        for _ in range(_TRIES):
            run = await self.get(run_id)
            job = await self._job_of(run)
            now = self._clock.now()
            moved = change(run, now)
            if moved is run:
                return run
            holder = run.node_id if run.state is State.RUNNING else None
            move = Move(run.epoch, moved, frees_slot=moved.ended_at is not None, taken_from=holder)
            turn = await self._store.turn([move])
            if not turn.lost:
                self._let_go(run.id, run.epoch)
                for observer in self._observers:
                    observer.on_moved([(move, job)], now)
                self._wake()
                return moved
        raise InvalidState(f"run {run_id} moves faster than it can be changed; try again")

    async def _job_of(self, run: Run) -> Job | None:
        jobs = await self._store.get_jobs([run.job_id]) if run.job_id is not None else []
        return jobs[0] if jobs else None
