"""What people do to jobs: create, change, pause, resume, delete."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from weakref import WeakValueDictionary

import msgspec

from ksana.domain.changes import CursorMoved, JobChange
from ksana.domain.errors import InvalidArgument, NotFound, Problem, VersionConflict
from ksana.domain.fires import Draws, Gap, owed_gap, paused_gap, plan_from
from ksana.domain.idempotency import IdempotencyRecord
from ksana.domain.jobs import Job, JobSpec, TargetSpec
from ksana.domain.moves import Move
from ksana.domain.ports import Clock, Observer, Store, Target
from ksana.domain.runs import Run
from ksana.domain.schedules import Once, fire_at, first_slot
from ksana.domain.states import AT_REST, UNSTARTED, Reason, State
from ksana.domain.validation import problems_of
from ksana.engine.draws import IdPool
from ksana.engine.recording import Recorder

_replace = msgspec.structs.replace
_SPEC_FIELDS = JobSpec.__struct_fields__
_TRIES = 20
_TICK = timedelta(microseconds=1)


class JobVerbs:
    """Create, change, pause, resume, delete."""

    def __init__(
        self,
        store: Store,
        targets: Mapping[str, Target],
        clock: Clock,
        ids: IdPool,
        draws: Draws,
        observers: Sequence[Observer],
        wake: Callable[[], None],
        recorder: Recorder,
        pause_ends: Callable[[], None] = lambda: None,
    ) -> None:
        self._store = store
        self._targets = targets
        self._clock = clock
        self._ids = ids
        self._draws = draws
        self._observers = observers
        self._wake = wake
        self._recorder = recorder
        self._pause_ends = pause_ends
        self._changing: WeakValueDictionary[int, asyncio.Lock] = WeakValueDictionary()

    async def create(
        self, surface: str, spec: JobSpec, answer: Callable[[Job], IdempotencyRecord] | None = None
    ) -> Job:
        """Store a new job and plan its first slot."""
        [job] = await self.create_many(surface, [spec], answer)
        return job

    async def create_many(
        self, surface: str, specs: Sequence[JobSpec], answer: Callable[[Job], IdempotencyRecord] | None = None
    ) -> list[Job]:
        """Store new jobs, all or none. `answer` makes the record that is kept with the first."""
        checked = [self.checked(spec) for spec in specs]
        await self._ids.ensure(len(specs))
        now = self._clock.now()
        jobs = [self._planned(self._new(surface, spec, now), now) for spec in checked]
        await self._store.add_jobs(jobs, answer(jobs[0]) if answer else None)
        for observer in self._observers:
            observer.on_changed(jobs, [], now)
        self._wake()
        await self._recorder.jobs("job.create", [(None, job) for job in jobs])
        return jobs

    def checked(self, spec: JobSpec) -> JobSpec:
        """The job as it is stored, its target's defaults filled in, or InvalidArgument naming every field at fault."""
        problems = problems_of(spec)
        config = spec.target.config
        target = self._targets.get(spec.target.kind)
        if target is None or _is_step_only(target):
            known = ", ".join(sorted(kind for kind, known in self._targets.items() if not _is_step_only(known)))
            why = "is not installed" if target is None else "can only be a node of a chain"
            problems.append(Problem("target.kind", f"{spec.target.kind!r} {why}; choose one of {known}"))
        else:
            try:
                config = target.check(config)
            except InvalidArgument as error:
                problems += error.problems
        if problems:
            raise InvalidArgument(problems)
        ref = spec.name if spec.unique_name else spec.ref
        return _replace(spec, ref=ref, target=TargetSpec(spec.target.kind, config))

    def _new(self, surface: str, spec: JobSpec, now: datetime) -> Job:
        fields = {name: getattr(spec, name) for name in _SPEC_FIELDS}
        return Job(
            **fields,
            id=self._ids.take(),
            surface=surface,
            awaits_callback=self._awaits_callback(spec),
            paused_at=None if spec.enabled else now,
            created_at=now,
            updated_at=now,
        )

    def _awaits_callback(self, spec: JobSpec) -> bool:
        return self._targets[spec.target.kind].awaits_callback(spec.target.config)

    def _planned(self, job: Job, now: datetime) -> Job:
        """The job with its cursor on the first slot. A `once` in the past is planned too: its slot leaves a trace."""
        slot_at = None if job.schedule is None or not job.enabled else first_slot(job.schedule, now)
        if slot_at is None or job.schedule is None:
            return job
        return _replace(job, next_slot_at=slot_at, next_fire_at=fire_at(job.schedule, slot_at, self._draws.jitter()))

    async def get(self, job_id: int) -> Job:
        jobs = await self._store.get_jobs([job_id])
        if not jobs or jobs[0].deleted_at is not None:
            raise NotFound(f"there is no job {job_id}")
        return jobs[0]

    async def change(
        self,
        job_id: int,
        edit: Callable[[Job], JobSpec],
        version: int | None = None,
        *,
        cancels: frozenset[State] = UNSTARTED,
    ) -> Job:
        """Change what a job says. With `version`, only if it still is at that one; without, the last writer wins.
        If that switches the job off, its runs in the states `cancels` names are canceled."""

        def changed(job: Job, now: datetime) -> JobChange:
            spec = self.checked(edit(job))
            fields = {name: getattr(spec, name) for name in _SPEC_FIELDS}
            after = _replace(job, **fields, awaits_callback=self._awaits_callback(spec))
            if after.enabled != job.enabled:
                return self._switched(job, _replace(after, enabled=job.enabled), after.enabled, now, cancels)
            if after.schedule == job.schedule:
                return JobChange(version=job.version, job=after)
            # Misfires are judged from here on: a new schedule owes nothing for instants before it existed. What the
            # old one still owed is recorded.
            return JobChange(
                version=job.version,
                job=self._planned(_unplanned(after), now),
                moves_cursor=True,
                gap=owed_gap(job, now, Reason.OPERATOR),
            )

        return await self._apply("job.change", job_id, changed, version)

    async def pause(
        self, job_id: int, version: int | None = None, *, until: datetime | None = None, reason: str = ""
    ) -> Job:
        """Plan no more slots and cancel what has not started. With `until` the pause ends by itself then. Of a paused
        job only that changes: until when, and why. Whoever pauses without an end can rely on nothing starting by itself
        any more, so an end that was said before is taken back."""

        def paused(job: Job, now: datetime) -> JobChange:
            if until is not None and until <= now:
                raise InvalidArgument.of("until", "has passed; name an instant to come")
            change = self._switched(job, job, False, now)
            said = _replace(change.job, paused_until=until, pause_reason=reason or change.job.pause_reason)
            return _replace(change, job=said)

        job = await self._apply("job.pause", job_id, paused, version)
        if until is not None:
            self._pause_ends()
        return job

    async def resume(self, job_id: int, version: int | None = None) -> Job:
        """Plan from the next slot on; what the pause left out is recorded as one gap, and a `once` as missed."""
        return await self._apply("job.resume", job_id, lambda job, now: self._switched(job, job, True, now), version)

    async def end_pause(self, job_id: int) -> Job:
        """Resume a job whose pause has come to its end, as of then: what came due since is late and not left out, and
        so its misfire rule decides about it."""

        def resumed(job: Job, now: datetime) -> JobChange:
            until = job.resumes_at
            if until is None or until > now:
                return JobChange(version=job.version, job=job)
            return self._switched(job, job, True, now, ended_at=until)

        return await self._apply("job.resume", job_id, resumed, None)

    def _switched(
        self,
        before: Job,
        job: Job,
        enabled: bool,
        now: datetime,
        cancels: frozenset[State] = UNSTARTED,
        ended_at: datetime | None = None,
    ) -> JobChange:
        """Switch `job` on or off; `before` is the same job as it is stored, whose slots the pause concerns. A pause to
        an instant has left out what came before it, and not the slot at it."""
        if job.enabled == enabled:
            return JobChange(version=job.version, job=job)
        if not enabled:
            return JobChange(
                version=job.version,
                job=_unplanned(_replace(job, enabled=False, paused_at=now, paused_until=None, pause_reason="")),
                moves_cursor=True,
                cancels=cancels,
                reason=Reason.PAUSED,
                # Slots that came due and were not fired yet: later ones are recorded when the pause ends.
                gap=owed_gap(before, now, Reason.PAUSED),
            )
        paused_at = before.paused_at or now
        resumed = _replace(job, enabled=True, paused_at=None, paused_until=None, pause_reason="")
        last = now if ended_at is None else ended_at - _TICK
        gap = paused_gap(before, paused_at, last)
        if job.schedule != before.schedule:
            resumed = self._planned(resumed, now)
        elif isinstance(job.schedule, Once):
            # One that came due in the pause is planned as it was: it is now found too late, and so it is missed.
            resumed, gap = plan_from(resumed, paused_at, self._draws), None
        else:
            resumed = plan_from(resumed, last, self._draws)
        return JobChange(version=job.version, job=resumed, moves_cursor=True, gap=gap)

    async def delete(self, job_id: int, version: int | None = None) -> None:
        """Forget a job: no new slots, nothing at rest is started any more. What is under way may finish."""

        def deleted(job: Job, now: datetime) -> JobChange:
            gone = _unplanned(_replace(job, enabled=False, deleted_at=now))
            return JobChange(version=job.version, job=gone, moves_cursor=True, cancels=AT_REST, reason=Reason.DELETED)

        await self._apply("job.delete", job_id, deleted, version)

    async def _apply(
        self, action: str, job_id: int, change: Callable[[Job, datetime], JobChange], version: int | None
    ) -> Job:
        """One change of a job at a time: of many that began at once, all but one would lose, again and again."""
        async with self._changing.setdefault(job_id, asyncio.Lock()):
            before, after = await self._applied(job_id, change, version)
        if after is not before:
            gone = after.deleted_at is not None
            await self._recorder.jobs(action, [(before, None if gone else after)])
        return after

    async def _applied(
        self, job_id: int, change: Callable[[Job, datetime], JobChange], version: int | None
    ) -> tuple[Job, Job]:
        """Read, change and store under the version read; if somebody was quicker, again, unless a version was asked."""
        for tries_left in reversed(range(_TRIES)):
            job = await self.get(job_id)
            if version is not None and job.version != version:
                raise VersionConflict(f"job {job_id} is at version {job.version}, not {version}; read it again")
            now = self._clock.now()
            wanted = change(job, now)
            if wanted.job == job:
                return job, job
            stored = _replace(wanted.job, version=job.version + 1, updated_at=now)
            # What is said of slots not yet fired holds only while none of them has been fired.
            cursor_was = job.next_slot_at if wanted.moves_cursor else msgspec.UNSET
            try:
                canceled = await self._store.change_jobs([_replace(wanted, job=stored, cursor_was=cursor_was)])
            except CursorMoved:
                continue
            except VersionConflict:
                if version is not None or not tries_left:
                    raise
                continue
            self._tell(stored, canceled, wanted.gap, now)
            self._wake()
            return job, stored
        raise VersionConflict(f"job {job_id} moves faster than it can be changed; try again")

    def _tell(self, job: Job, canceled: Sequence[Run], gap: Gap | None, now: datetime) -> None:
        for observer in self._observers:
            observer.on_changed([job], [], now)
            if canceled:
                observer.on_moved([(Move(run.epoch - 1, run), job) for run in canceled], now)
            if gap is not None:
                observer.on_fired([], [gap], now)


def _is_step_only(target: Target) -> bool:
    return getattr(target, "is_step_only", False)


def _unplanned(job: Job) -> Job:
    return _replace(job, next_slot_at=None, next_fire_at=None)
