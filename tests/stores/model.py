"""A Store of plain dictionaries: the contract said as simply as possible, to hold the real stores against."""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec

from ksana.domain.chains import Chain
from ksana.domain.changes import CursorMoved, JobChange
from ksana.domain.claims import Claim, Claimed, Fired, Turn
from ksana.domain.errors import AlreadyExists, NotFound, VersionConflict
from ksana.domain.fires import DueJob, Fire, Gap
from ksana.domain.idempotency import IdempotencyRecord, IdempotencyReplay
from ksana.domain.jobs import Job
from ksana.domain.keys import StoredKey
from ksana.domain.moves import Kept, Move, advance, pass_by
from ksana.domain.nodes import Heartbeat, NodeInfo
from ksana.domain.plans import read_plan, shape_of_plan
from ksana.domain.queries import Counts, FireRecord, JobQuery, Minute, Page, RunQuery
from ksana.domain.retention import Retention
from ksana.domain.runs import Attempt, LastAttempt, Run
from ksana.domain.states import AT_REST, CLAIMABLE, FINAL, Event, Reason, State
from ksana.domain.steering import Family, Steer, ended, is_branched, risen

_replace = msgspec.structs.replace
_MINUTE = timedelta(minutes=1)


class ModelStore:
    """Everything in memory, nothing clever."""

    parallelism = 1

    def __init__(self, next_ids: dict[str, int], identity: int) -> None:
        self._next_ids = next_ids
        self._identity = identity
        self._jobs: dict[int, Job] = {}
        self._runs: dict[int, Run] = {}
        self._attempts: dict[tuple[int, int], Attempt] = {}
        self._gaps: dict[tuple[int, datetime, Reason], Gap] = {}
        self._nodes: dict[int, NodeInfo] = {}
        self._taken: dict[int, set[tuple[int, int]]] = defaultdict(set)
        self._answers: dict[tuple[str, str], IdempotencyRecord] = {}
        self._keys: dict[str, StoredKey] = {}
        self._kept: dict[int, Kept] = {}

    async def open(self) -> None: ...

    async def close(self) -> None: ...

    async def ping(self) -> None: ...

    async def identity(self) -> int:
        return self._identity

    async def reserve_ids(self, what: str, count: int) -> range:
        start = self._next_ids[what]
        self._next_ids[what] += count
        return range(start, start + count)

    # Jobs

    async def add_jobs(self, jobs: Sequence[Job], record: IdempotencyRecord | None = None) -> None:
        self._refuse_replay(record)
        taken = [(job.surface, job.ref) for job in self._jobs.values() if job.ref and job.deleted_at is None]
        for job in jobs:
            if job.ref and (job.surface, job.ref) in taken:
                raise AlreadyExists(job.ref)
            taken.append((job.surface, job.ref))
        self._jobs |= {job.id: job for job in jobs}
        self._remember(record)

    def _refuse_replay(self, record: IdempotencyRecord | None) -> None:
        if record and (record.scope, record.key) in self._answers:
            raise IdempotencyReplay(self._answers[record.scope, record.key])

    def _remember(self, record: IdempotencyRecord | None) -> None:
        if record:
            self._answers[record.scope, record.key] = record

    async def change_jobs(self, changes: Sequence[JobChange]) -> list[Run]:
        for change in changes:
            if change.job.id not in self._jobs:
                raise NotFound(str(change.job.id))
            if self._jobs[change.job.id].version != change.version:
                raise VersionConflict(str(change.job.id))
            if change.cursor_was is not msgspec.UNSET and change.cursor_was != self._jobs[change.job.id].next_slot_at:
                raise CursorMoved(str(change.job.id))
        canceled = [run for change in changes for run in self._change(change)]
        self._follow(canceled)
        for change in changes:
            self._fill_slots(change.job.id)
        return canceled

    def _change(self, change: JobChange) -> list[Run]:
        old, new = self._jobs[change.job.id], change.job
        if not change.moves_cursor:
            new = _replace(new, next_slot_at=old.next_slot_at, next_fire_at=old.next_fire_at)
        self._jobs[new.id] = new
        if change.gap:
            self._keep_gap(change.gap)
        canceled = []
        for run in self._runs_of(new.id):
            if run.state in AT_REST:
                run = self._runs[run.id] = _replace(run, job_version=new.version)
            if run.state in change.cancels:
                run = self._runs[run.id] = advance(run, Event.CANCEL, new.updated_at, reason=change.reason)
                canceled.append(run)
        return canceled

    def _runs_of(self, job_id: int) -> list[Run]:
        return sorted((run for run in self._runs.values() if run.job_id == job_id), key=lambda run: run.id)

    async def get_jobs(self, ids: Iterable[int]) -> list[Job]:
        return [self._jobs[id] for id in ids if id in self._jobs]

    async def find_jobs(self, query: JobQuery) -> Page[Job]:
        wanted = {"surface": query.surface, "name": query.exact_name, "ref": query.ref, "enabled": query.enabled}
        found = [
            job
            for job in self._jobs.values()
            if job.deleted_at is None
            and all(getattr(job, name) == value for name, value in wanted.items() if value is not None)
            and query.name.casefold() in job.name.casefold()
            and query.kind in (None, job.target.kind)
            and (query.tag is None or query.tag in job.tags)
        ]
        return _page(found, query.sort.value, query.descending, query.offset, query.limit)

    # Firing

    async def fire_due(self, now: datetime, limit: int, decide: Callable[[list[DueJob]], list[Fire]]) -> Fired:
        planned = [job for job in self._jobs.values() if job.next_fire_at is not None and job.next_fire_at <= now]
        planned.sort(key=lambda job: (job.next_fire_at, job.id))
        fires = decide([self._due(job) for job in planned[:limit]]) if planned else []
        claimed: list[Claimed] = []
        gaps: list[Gap] = []
        for fire in fires:
            job = self._jobs[fire.job_id]
            slots = {run.slot_at for run in self._runs_of(job.id)} - {None}
            for run in fire.runs:
                if run.slot_at not in slots:
                    self._runs[run.id] = run
                    claimed.append(Claimed(run, job))
            for gap in fire.gaps:
                self._keep_gap(gap)
            gaps += fire.gaps
            self._jobs[job.id] = _replace(job, next_slot_at=fire.next_slot_at, next_fire_at=fire.next_fire_at)
        return Fired(claimed, gaps, len(planned[:limit]))

    def _due(self, job: Job) -> DueJob:
        assert job.next_slot_at is not None and job.next_fire_at is not None
        active = 0 if job.overlap.limit is None else self._active(job.id)
        return DueJob(job, job.next_slot_at, job.next_fire_at, active)

    def _active(self, job_id: int) -> int:
        return sum(run.ended_at is None and run.holds_slot for run in self._runs_of(job_id))

    def _keep_gap(self, gap: Gap) -> None:
        self._gaps.setdefault((gap.job_id, gap.from_at, gap.reason), gap)

    async def next_fire_at(self) -> datetime | None:
        return min((job.next_fire_at for job in self._jobs.values() if job.next_fire_at), default=None)

    async def next_due_at(self, queues: Sequence[str]) -> datetime | None:
        return min((run.due_at for run in self._claimable(queues)), default=None)

    async def add_run(
        self,
        job_id: int,
        make: Callable[[Job, int], Run],
        record: Callable[[Run], IdempotencyRecord] | None = None,
    ) -> Run:
        if job_id not in self._jobs:
            raise NotFound(str(job_id))
        run = make(self._jobs[job_id], self._active(job_id))
        answer = record(run) if record else None
        self._refuse_replay(answer)
        self._remember(answer)
        self._runs[run.id] = run
        return run

    # Turns

    async def turn(self, moves: Sequence[Move], claim: Claim | None = None) -> Turn:
        lost, followed = self._apply(moves)
        return Turn(lost, self._claim(claim) if claim else [], followed=followed)

    def _apply(self, moves: Sequence[Move]) -> tuple[frozenset[int], list[tuple[Move, Job | None]]]:
        before = dict(self._runs)
        won: list[Move] = []
        for move in moves:
            run = before.get(move.run.id)
            if run is not None and run.epoch == move.epoch and run.id not in {other.run.id for other in won}:
                won.append(move)
        for move in won:
            self._move(move)
        for job_id in sorted({move.run.job_id for move in won if move.frees_slot and move.run.job_id is not None}):
            self._fill_slots(job_id)
        lost = frozenset(move.run.id for move in moves) - {move.run.id for move in won}
        return lost, self._follow([move.run for move in won])

    def _move(self, move: Move) -> None:
        self._runs[move.run.id] = move.run
        if move.branch:
            self._runs[move.run.id] = _replace(move.run, input=move.branch.plan)
            self._runs |= {child.id: child for child in move.branch.children}
        if move.artifact is not None:
            self._kept[move.run.id] = _replace(self._kept_of(move.run.id), artifact=move.artifact)
        if move.checkpoint is not None:
            self._kept[move.run.id] = _replace(self._kept_of(move.run.id), checkpoint=move.checkpoint)
        if move.attempt:
            self._attempts[move.attempt.run_id, move.attempt.epoch] = move.attempt
        if move.taken_from is not None:
            self._taken[move.taken_from].add((move.run.id, move.epoch))

    def _fill_slots(self, job_id: int) -> int:
        runs = [run for run in self._runs_of(job_id) if run.ended_at is None]
        waiting = [run for run in runs if run.state is State.WAITING and run.reason is Reason.SLOT]
        holding = sum(run.state is not State.WAITING and run.holds_slot for run in runs)
        limit = self._jobs[job_id].overlap.limit
        free = len(waiting) if limit is None else max(0, limit - holding)
        for run in waiting[:free]:
            self._runs[run.id] = _replace(run, state=State.SCHEDULED, reason=None, epoch=run.epoch + 1)
        return len(waiting[:free])

    def _claimable(self, queues: Sequence[str]) -> list[Run]:
        return [run for run in self._runs.values() if run.state in CLAIMABLE and run.queue in queues]

    def _claim(self, claim: Claim) -> list[Claimed]:
        due = [run for run in self._claimable(claim.queues) if run.due_at <= claim.now]
        due.sort(key=lambda run: (-run.priority, run.due_at, run.id))
        claimed = []
        for run in due[: claim.limit]:
            run = self._runs[run.id] = advance(run, Event.CLAIM, claim.now, node_id=claim.node_id)
            claimed.append(self._with_job(run))
        return claimed

    def _with_job(self, run: Run) -> Claimed:
        return Claimed(run, None if run.job_id is None else self._jobs[run.job_id])

    # Families

    def _follow(self, runs: Iterable[Run]) -> list[tuple[Move, Job | None]]:
        """From the states of all the children follows everything, each time anew."""
        told: list[tuple[Move, Job | None]] = []
        todo = list(runs)
        for run in todo:
            parent = self._runs.get(run.parent_id or 0)
            if run.ended_at is None or parent is None or not (is_branched(parent) or parent.state is State.STOPPING):
                continue
            children = self._children(parent.id)
            is_stopping = parent.state is State.STOPPING
            chain = Chain(
                shape_of_plan(read_plan(parent.input)), [child.state for child in children], is_stopping=is_stopping
            )
            follows, now = chain.advance(), run.ended_at
            for place in follows.admits:
                child = children[place]
                self._runs[child.id] = advance(child, Event.ADMIT, now, due_at=now)
            for place in follows.skips:
                child = children[place]
                self._runs[child.id] = advance(child, Event.SKIP, now, reason=Reason.DEPENDENCY)
            for place in follows.passes:
                child = children[place]
                done = self._runs[child.id] = pass_by(child, now)
                told.append((Move(child.epoch, done), None))
            if follows.end is not None:
                failed = chain.first_failed
                error = "" if failed is None else f"{children[failed].step}: {children[failed].error}"
                over = self._runs[parent.id] = ended(parent, follows.end, now, error)
                told.append((Move(parent.epoch, over), self._with_job(over).job))
                todo.append(over)
        for _, job in told:
            if job is not None:
                self._fill_slots(job.id)
        return told

    def _children(self, parent_id: int) -> list[Run]:
        return sorted((run for run in self._runs.values() if run.parent_id == parent_id), key=lambda run: run.id)

    async def children(self, parent_id: int) -> list[Run]:
        return self._children(parent_id)

    async def steer(
        self, parent_id: int, decide: Steer, hooks: Sequence[str] = (), above: Steer | None = None
    ) -> list[tuple[Move, Job | None]]:
        if parent_id not in self._runs:
            raise NotFound(str(parent_id))
        family = Family(self._runs[parent_id], self._children(parent_id))
        moves = decide(family)
        for move in moves:
            self._move(move)
        for move in moves:
            if move.frees_slot and move.run.job_id is not None:
                self._fill_slots(move.run.job_id)
        told = [(move, self._with_job(move.run).job) for move in moves]
        if above and (run := risen(family, moves)) and run.parent_id is not None:
            return told + await self.steer(run.parent_id, above, hooks, above)
        return told + self._follow([move.run for move in moves if move.run.id == parent_id])

    def _kept_of(self, run_id: int) -> Kept:
        return self._kept.get(run_id) or Kept(run_id=run_id)

    async def kept(self, run_ids: Iterable[int]) -> dict[int, Kept]:
        return {run_id: self._kept[run_id] for run_id in run_ids if run_id in self._kept}

    async def keep_checkpoint(self, run_id: int, epoch: int, checkpoint: bytes) -> bool:
        is_there = run_id in self._runs and self._runs[run_id].epoch == epoch
        if is_there:
            self._kept[run_id] = _replace(self._kept_of(run_id), checkpoint=checkpoint)
        return is_there

    # Reading

    async def admit_waiting(self) -> int:
        return sum(self._fill_slots(job_id) for job_id in list(self._jobs))

    async def get_runs(self, ids: Iterable[int]) -> list[Run]:
        return [self._runs[id] for id in ids if id in self._runs]

    async def run_by_token(self, token: str) -> Run | None:
        return next((run for run in self._runs.values() if run.callback_token == token), None)

    async def find_runs(self, query: RunQuery) -> Page[Run]:
        wanted = {
            "surface": query.surface,
            "job_id": query.job_id,
            "parent_id": query.parent_id,
            "kind": query.kind,
        }
        found = [
            run
            for run in self._runs.values()
            if all(getattr(run, name) == value for name, value in wanted.items() if value is not None)
            and query.is_child in (None, run.parent_id is not None)
            and (not query.states or run.state in query.states)
            and (not query.reasons or run.reason in query.reasons)
            and (query.planned_since is None or run.planned_at >= query.planned_since)
            and (query.planned_until is None or run.planned_at <= query.planned_until)
            and (query.since is None or (run.ended_at or run.due_at) >= query.since)
            and (query.until is None or (run.ended_at or run.due_at) < query.until)
            and self._job_matches(run, query)
        ]
        rest = [run for run in found if query.before_id is None or run.id < query.before_id]
        rest = [run for run in rest if query.after_id is None or run.id > query.after_id]
        page = _page(rest, query.sort.value, query.descending, query.offset, query.limit)
        return Page(page.items, len(found))

    def _job_matches(self, run: Run, query: RunQuery) -> bool:
        if run.job_id is None:
            return query.tag is None and not query.job_name
        job = self._jobs[run.job_id]
        tags = job.tags if job.deleted_at is None else ()
        return query.job_name.casefold() in job.name.casefold() and (query.tag is None or query.tag in tags)

    async def attempts(self, run_id: int) -> list[Attempt]:
        return [self._attempts[key] for key in sorted(self._attempts) if key[0] == run_id]

    async def last_attempts(self, run_ids: Iterable[int], most_bytes: int | None = None) -> dict[int, LastAttempt]:
        found = {run_id: await self.attempts(run_id) for run_id in run_ids}
        return {run_id: LastAttempt(attempts[-1]) for run_id, attempts in found.items() if attempts}

    async def last_runs(self, job_ids: Iterable[int], states: Collection[State] = frozenset(State)) -> dict[int, Run]:
        found = {job_id: [run for run in self._runs_of(job_id) if run.state in states] for job_id in job_ids}
        return {job_id: max(runs, key=lambda run: (run.created_at, run.id)) for job_id, runs in found.items() if runs}

    async def fire_log(self, job_id: int, since: datetime, until: datetime, limit: int) -> list[FireRecord]:
        decisions = {State.SKIPPED: "skipped", State.MISSED: "missed"}
        log = [
            FireRecord(
                job_id=job_id,
                from_at=run.slot_at,
                to_at=run.slot_at,
                count=1,
                decision=decisions.get(run.state, "fired"),
                reason=run.reason,
                run_id=run.id,
                recorded_at=run.created_at,
            )
            for run in self._runs_of(job_id)
            if run.slot_at is not None and since <= run.slot_at < until
        ]
        log += [
            FireRecord(
                job_id=job_id,
                from_at=gap.from_at,
                to_at=gap.to_at,
                count=gap.count,
                decision="left_out",
                reason=gap.reason,
                run_id=None,
                recorded_at=gap.recorded_at,
            )
            for gap in self._gaps.values()
            if gap.job_id == job_id and gap.from_at < until and gap.to_at >= since
        ]
        return sorted(log, key=lambda record: record.from_at, reverse=True)[:limit]

    # Nodes

    async def join(self, name: str, now: datetime, lease: timedelta) -> NodeInfo:
        [id] = await self.reserve_ids("node", 1)
        self._nodes[id] = NodeInfo(id=id, name=name, started_at=now, lease_until=now + lease)
        return self._nodes[id]

    async def beat(self, node_id: int, now: datetime, lease: timedelta) -> Heartbeat:
        alive = node_id in self._nodes
        if alive:
            self._nodes[node_id] = _replace(self._nodes[node_id], lease_until=now + lease)
        draining = alive and self._nodes[node_id].draining
        return Heartbeat(alive, sorted(self._taken.pop(node_id, set())), draining)

    async def leave(self, node_id: int) -> None:
        self._nodes.pop(node_id, None)
        self._taken.pop(node_id, None)

    async def nodes(self) -> list[NodeInfo]:
        return [self._nodes[id] for id in sorted(self._nodes)]

    async def lapsed(self, now: datetime, limit: int) -> list[Claimed]:
        live = {node.id for node in self._nodes.values() if node.lease_until > now}
        runs = sorted(self._runs.values(), key=lambda run: run.id)
        found = [run for run in runs if run.node_id is not None and run.node_id not in live]
        late = [run for run in runs if run.deadline_at is not None and run.deadline_at <= now]
        found += sorted((run for run in late if run not in found), key=lambda run: str(run.deadline_at))
        return [self._with_job(run) for run in found[:limit]]

    # Upkeep

    async def prune(self, retention: Retention) -> int:
        kept = {run.id for job_id in self._jobs for run in self._newest(job_id, retention.keep_last)}
        old = [
            run.id
            for run in self._runs.values()
            if run.parent_id is None
            and run.state in FINAL - {State.DEAD_LETTER}
            and run.ended_at is not None
            and run.ended_at < retention.before
            and run.id not in kept
            and all(self._runs[id].state is not State.DEAD_LETTER for id in self._family(run.id))
        ]
        for id in [member for root in old for member in self._family(root)]:
            del self._runs[id]
        self._kept = {run_id: kept for run_id, kept in self._kept.items() if run_id in self._runs}
        self._attempts = {key: attempt for key, attempt in self._attempts.items() if key[0] in self._runs}
        gaps = [key for key, gap in self._gaps.items() if gap.recorded_at < retention.before]
        answers = [key for key, answer in self._answers.items() if answer.created_at < retention.before]
        for gap in gaps:
            del self._gaps[gap]
        for answer in answers:
            del self._answers[answer]
        holders = {run.node_id for run in self._runs.values()}
        for node in await self.nodes():
            if node.lease_until <= retention.now and node.id not in holders:
                await self.leave(node.id)
        for node_id in set(self._taken) - set(self._nodes):
            del self._taken[node_id]
        return max(len(old), len(gaps), len(answers))

    def _family(self, id: int) -> list[int]:
        found = [id]
        for member in found:
            found += [child.id for child in self._children(member)]
        return found

    def _newest(self, job_id: int, count: int) -> list[Run]:
        return self._runs_of(job_id)[::-1][:count]

    async def roll_up(self, until: datetime) -> int:
        return 0

    async def minutes(self, since: datetime, until: datetime) -> list[Minute]:
        sums: dict[tuple[datetime, str, State], list[int]] = defaultdict(lambda: [0, 0, 0])
        for run in self._runs.values():
            if run.ended_at is None or not _minute(since) <= _minute(run.ended_at) < until:
                continue
            total = sums[_minute(run.ended_at), run.kind, run.state]
            total[0] += 1
            if run.started_at is not None:
                total[1] += _micros(run.ended_at - run.started_at)
                total[2] += max(0, _micros(run.started_at - run.due_at))
        return [
            Minute(minute_at=at, kind=kind, state=state, count=count, busy_ms=busy // 1000, late_ms=late // 1000)
            for (at, kind, state), (count, busy, late) in sorted(sums.items())
        ]

    async def counts(self, now: datetime) -> Counts:
        jobs = [job for job in self._jobs.values() if job.deleted_at is None]
        unfinished: dict[State, int] = defaultdict(int)
        for run in self._runs.values():
            if run.ended_at is None:
                unfinished[run.state] += 1
        due = [run.due_at for run in self._runs.values() if run.state in CLAIMABLE and run.due_at <= now]
        return Counts(
            jobs=dict(Counter((job.surface, job.enabled) for job in jobs)),
            unfinished=dict(unfinished),
            due=len(due),
            oldest_due_at=min(due, default=None),
            dead_letters=sum(run.state is State.DEAD_LETTER for run in self._runs.values()),
        )

    # Idempotency and keys

    async def find_idempotency(self, scope: str, key: str) -> IdempotencyRecord | None:
        return self._answers.get((scope, key))

    async def add_key(self, key: StoredKey) -> None:
        self._keys[key.id] = key

    async def keys(self) -> list[StoredKey]:
        return sorted(self._keys.values(), key=lambda key: (key.created_at, key.id))

    async def revoke_key(self, key_id: str, now: datetime) -> bool:
        key = self._keys.get(key_id)
        if key is None or key.revoked_at is not None:
            return False
        self._keys[key_id] = _replace(key, revoked_at=now)
        return True


def _page(found: list[Any], sort: str, descending: bool, offset: int, limit: int) -> Page[Any]:
    """What has no value comes last, whichever way the list runs."""
    there = [one for one in found if getattr(one, sort) is not None]
    rest = [one for one in found if getattr(one, sort) is None]
    there.sort(key=lambda one: (getattr(one, sort), one.id), reverse=descending)
    rest.sort(key=lambda one: one.id, reverse=descending)
    return Page((there + rest)[offset : offset + limit], len(found))


def _minute(instant: datetime) -> datetime:
    return instant.replace(second=0, microsecond=0)


def _micros(span: timedelta) -> int:
    return span // timedelta(microseconds=1)
