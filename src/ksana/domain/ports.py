"""The seams between rooms: what the engine asks of a store, a target, a clock and an observer, with exact contracts."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any, Protocol

from ksana.domain.alerts import Alert, AlertQuery
from ksana.domain.archive import Exported, Extent, Section
from ksana.domain.audit import AuditEntry, AuditQuery
from ksana.domain.callbacks import CallbackRecord, Heard, Progress
from ksana.domain.changes import JobChange, Settlement
from ksana.domain.claims import Claim, Claimed, Fired, Turn
from ksana.domain.fires import DueJob, Fire, Gap
from ksana.domain.foresight import Births, Foreseen, Prospect, Sight
from ksana.domain.handing_out import Pulled
from ksana.domain.idempotency import IdempotencyRecord
from ksana.domain.items import Enqueued, Pull
from ksana.domain.jobs import Job
from ksana.domain.keys import StoredKey
from ksana.domain.limits import QueueSettings
from ksana.domain.moves import Kept, Move
from ksana.domain.nodes import Heartbeat, NodeInfo
from ksana.domain.objects import GovernedObject, ObjectQuery
from ksana.domain.outcomes import AttemptContext, Outcome
from ksana.domain.queries import Counts, ErrorGroup, FireRecord, JobQuery, Minute, Page, QueueCounts, RunQuery
from ksana.domain.retention import Retention
from ksana.domain.runs import Attempt, LastAttempt, Run
from ksana.domain.states import State
from ksana.domain.steering import Steer


class Clock(Protocol):
    """The only source of time."""

    def now(self) -> datetime:
        """The current instant, aware UTC."""
        ...

    async def sleep(self, span: timedelta) -> None:
        """Return once that much time has passed on this clock."""
        ...


class Target(Protocol):
    """Something a run can do. One instance serves all attempts of a process."""

    kind: str

    def check(self, config: dict[str, Any]) -> dict[str, Any]:
        """The config with its defaults filled in, or InvalidArgument naming every field at fault. No I/O."""
        ...

    def awaits_callback(self, config: dict[str, Any], input: Any = None) -> bool:
        """Whether a run of this config, with that input, ends by a callback rather than by the target's answer."""
        ...

    async def execute(self, context: AttemptContext, config: dict[str, Any]) -> Outcome:
        """Make one attempt within `context.timeout`. Never raises but for cancellation; says what happened."""
        ...

    async def close(self) -> None:
        """Let go of connections and threads."""
        ...


class Begun(Protocol):
    """An attempt under way that nobody waits for: its outcome is told."""

    def give_up(self) -> None:
        """Stop it as far as that is possible. Nothing is told any more."""
        ...


class Beginning(Target, Protocol):
    """A target that needs no task to wait for each of its attempts. The engine looks for `begin` by its name, and makes
    do with `execute` where there is none."""

    def begin(
        self, context: AttemptContext, config: dict[str, Any], tell: Callable[[Outcome], None]
    ) -> Begun | Outcome | None:
        """Begin an attempt that ends within `context.timeout`, and call `tell` in the loop, once and not before this
        has returned, with what came of it; or answer at once. None if it takes a task to wait for this one, and then
        nothing was begun. Does not raise."""
        ...


class Store(Protocol):
    """Where jobs, runs and all that must survive live.

    Every verb is one atomic step and durable when it returns. A store that cannot be reached raises StoreUnavailable
    and has then either done the whole step or nothing. Verbs take and return lists, because work comes in groups.
    """

    parallelism: int
    """How many turns are worth having under way at once."""

    async def open(self) -> None:
        """Connect, check the conditions the promises rest on, bring the schema up to date."""
        ...

    async def close(self) -> None: ...

    async def ping(self) -> None:
        """Return if the store answers, else raise StoreUnavailable."""
        ...

    async def identity(self) -> int:
        """A number drawn once per store, the same for every node that shares it (63 bits); negative while a copy of
        another store fills this one."""
        ...

    async def reserve_ids(self, what: str, count: int) -> range:
        """Ids nobody else gets, rising. Ids reserved and not used are simply missing."""
        ...

    async def add_jobs(self, jobs: Sequence[Job], record: IdempotencyRecord | None = None) -> None:
        """Store new jobs. AlreadyExists if (surface, ref) is taken; IdempotencyReplay if the record's key is."""
        ...

    async def change_jobs(self, changes: Sequence[JobChange]) -> list[Run]:
        """Store new values of jobs and answer the runs canceled. VersionConflict, NotFound or CursorMoved, and then
        nothing is done."""
        ...

    async def get_jobs(self, ids: Iterable[int]) -> list[Job]:
        """The jobs with these ids that exist, deleted ones included, in no particular order."""
        ...

    async def find_jobs(self, query: JobQuery) -> Page[Job]:
        """Jobs that are not deleted."""
        ...

    async def fire_due(self, now: datetime, limit: int, decide: Callable[[list[DueJob]], list[Fire]]) -> Fired:
        """Fire jobs whose `next_fire_at` has come, earliest first.

        `decide` is pure and is called inside the step with jobs no other node is firing; for each Fire it returns, the
        runs and gaps are added and the cursor moved, together. A run whose (job, slot) exists already is left out.
        """
        ...

    async def bursts(self, after: datetime, until: datetime, least: int) -> list[tuple[datetime, int]]:
        """The instants behind `after`, through `until`, at which that many jobs or more come due, and how many do,
        earliest first. A store that has nothing to gain from looking ahead may know of none."""
        ...

    async def look_ahead(
        self, at: datetime, after_id: int, limit: int, foresee: Callable[[DueJob], Prospect | None]
    ) -> Sight:
        """Make ready what comes due at that instant: ask `foresee` about no more than `limit` jobs with ids above
        `after_id`. Nothing is changed or held."""
        ...

    async def fire_foreseen(self, foreseen: Foreseen, births: Births) -> Fired:
        """Fire the prospects that stand: their runs are added and their cursors moved, together. The others, and those
        another node is firing, are left as they are. A run whose (job, slot) exists already is left out."""
        ...

    async def next_fire_at(self) -> datetime | None:
        """When the next job comes due."""
        ...

    async def pauses(self, limit: int) -> list[tuple[int, datetime]]:
        """Which jobs' pauses end by themselves, and when: the earliest so many, found without looking at the others."""
        ...

    async def next_due_at(self, queues: Sequence[str]) -> datetime | None:
        """When the next claimable run of these queues comes due."""
        ...

    async def add_run(
        self,
        job_id: int,
        make: Callable[[Job, int], Run],
        record: Callable[[Run], IdempotencyRecord] | None = None,
    ) -> Run:
        """Add a run of a job outside its schedule. `make` gets the job and how many of its unfinished runs hold a slot,
        inside the step, and may raise to refuse. AlreadyExists if it is to stand for a slot that has a run."""
        ...

    async def turn(
        self,
        moves: Sequence[Move],
        claim: Claim | None = None,
        alerts: Sequence[Alert] = (),
        hooks: Sequence[str] = (),
    ) -> Turn:
        """Apply moves whose epoch still matches, let runs waiting for a freed slot in (oldest first), then claim.

        A move with a `branch` adds its children and the run's new input. What a move means for the family of a run
        follows in the same step, as `domain.chains` has it and under the instant at which the run ended: siblings are
        admitted or skipped, and the parent ends, which may in turn mean something for its own family. The end of a
        parent leaves alerts for `hooks`.

        Claims take due runs by priority, then due instant, then id, and move them by Event.CLAIM. A claim for followers
        may leave other due runs alone; a store to which that is no cheaper claims as ever. An alert is kept if
        the move it tells of (the one that leads to its run and epoch) was applied.
        """
        ...

    async def enqueue(self, new: Sequence[Enqueued]) -> list[int]:
        """Add items to the queue. One whose record has a key that was used, in the same list or ever before, is left
        out. Answer for each the run that stands for it: its own, or the one that used the key."""
        ...

    async def pull(self, pull: Pull) -> Pulled:
        """Hand out due items of a queue, in the order of `items.pull_key`, as `handing_out.HandingOut` has it: together
        with the objects it changes and the buckets it fills. Nobody else hands out items under the same limits
        meanwhile."""
        ...

    async def settle(self, settlement: Settlement) -> list[tuple[Move, Job | None]]:
        """Do all of it, items as `enqueue` and moves as `turn` have it, and answer what followed for the families of
        the runs. If one of the moves comes too late or an object is not as it was, do nothing and raise Overtaken."""
        ...

    async def get_objects(self, subjects: Iterable[str]) -> dict[str, GovernedObject]:
        """Those of the objects that are known, by what items call them."""
        ...

    async def find_objects(self, query: ObjectQuery) -> Page[GovernedObject]:
        """Objects by type, then id."""
        ...

    async def queue_settings(self) -> list[QueueSettings]:
        """What was set for queues, by name."""
        ...

    async def set_queue(self, settings: QueueSettings, entry: AuditEntry) -> None:
        """Store what was set for a queue, on top of the version just below; VersionConflict if that is not there."""
        ...

    async def add_audit(self, entries: Sequence[AuditEntry]) -> None:
        """Keep entries of the audit; those there already are left alone."""
        ...

    async def find_audit(self, query: AuditQuery) -> Page[AuditEntry]: ...

    async def queue_counts(self, now: datetime) -> list[QueueCounts]:
        """How the queues stand that are pulled from, by name; one in which nothing waits, is held or is dead is left
        out."""
        ...

    async def dead_by_error(self, queue: str | None, limit: int) -> list[ErrorGroup]:
        """Dead letters of a queue, or of all that are pulled from, by their error; the largest groups first."""
        ...

    async def steer(
        self, parent_id: int, decide: Steer, hooks: Sequence[str] = (), above: Steer | None = None
    ) -> list[tuple[Move, Job | None]]:
        """Apply what `decide` makes of a run and its children, all of it or, if it raises, nothing; answer all moves
        made: its own, and after them those that followed for the families above. NotFound if there is no such run.
        `decide` is asked inside the step and sees the family as it is; nobody else moves any of it meanwhile. If the
        run has risen by it, `above` is asked of the family it is a child of, and so on up, in the same step."""
        ...

    async def children(self, parent_id: int) -> list[Run]:
        """The children of a run, in the order of their steps."""
        ...

    async def kept(self, run_ids: Iterable[int]) -> dict[int, Kept]:
        """What is kept of those of the runs that have left something."""
        ...

    async def keep_checkpoint(self, run_id: int, epoch: int, checkpoint: bytes) -> bool:
        """Keep how far an attempt has come, if the run is still at this epoch; answer whether it was."""
        ...

    async def hear(self, heard: Heard) -> list[tuple[Move, Job | None]] | None:
        """Keep a callback in the ledger, together with all it changes: its move, the progress it tells of (which
        replaces what was known of the run's) and the alerts. Answer what followed for the run's family as `turn` does;
        None, and keep nothing, if its move came too late. A ledger that is full (LEDGER_LENGTH) takes only what ends
        the run; the rest counts all the same and leaves no line."""
        ...

    async def callbacks(self, run_id: int) -> list[CallbackRecord]:
        """The callbacks that came for a run, oldest first, as far as the ledger goes."""
        ...

    async def progress(self, run_ids: Iterable[int]) -> dict[int, Progress]:
        """How far those of the runs have come that have told of it."""
        ...

    async def add_attempts(self, attempts: Sequence[Attempt]) -> None:
        """Keep attempts whose moves came too late; those of runs that are gone, and those there already, are left
        alone."""
        ...

    async def lease_alerts(self, hooks: Sequence[str], now: datetime, until: datetime, limit: int) -> list[Alert]:
        """Alerts for these hooks that are due at `now`, earliest first, each with one attempt more. They come due again
        at `until` unless they are settled before, so no two nodes deliver the same one at once."""
        ...

    async def settle_alerts(self, alerts: Sequence[Alert]) -> None:
        """Store what came of leased alerts (state, due instant, error); one that was leased again since (its `attempts`
        have risen) is left alone."""
        ...

    async def give_up_alerts(self, known: Sequence[str], before: datetime, now: datetime, error: str) -> dict[str, int]:
        """Give up, for that reason, what is owed to hooks that are not among the known ones and that nobody serves: all
        that is owed to such a hook was due at `before` already, while a lease would have put some of it off. Answer how
        many alerts each of them had."""
        ...

    async def find_alerts(self, query: AlertQuery) -> Page[Alert]:
        """Alerts by run id, then epoch, then hook, the newest run first."""
        ...

    async def admit_waiting(self) -> int:
        """Let in runs that wait for a slot of their job which is free; answer how many. `turn` does so for the slots it
        frees; this finds those a change of the job's overlap rule left behind."""
        ...

    async def get_runs(self, ids: Iterable[int]) -> list[Run]: ...

    async def run_by_token(self, token: str) -> Run | None: ...

    async def find_runs(self, query: RunQuery) -> Page[Run]: ...

    async def attempts(self, run_id: int) -> list[Attempt]:
        """All attempts of a run, oldest first."""
        ...

    async def last_attempts(self, run_ids: Iterable[int], most_bytes: int | None = None) -> dict[int, LastAttempt]:
        """The newest attempt of each run that has one. With `most_bytes`, bodies that are larger together are left
        out."""
        ...

    async def last_runs(self, job_ids: Iterable[int], states: Collection[State] = frozenset(State)) -> dict[int, Run]:
        """The run made last, of those in one of these states, of each job that has one. A store may take it that
        the latest slot was fired last, and that of runs asked for by hand the highest id is the newest."""
        ...

    async def fire_log(self, job_id: int, since: datetime, until: datetime, limit: int) -> list[FireRecord]:
        """What became of each planned instant, newest first."""
        ...

    async def join(self, name: str, now: datetime, lease: timedelta) -> NodeInfo:
        """Register a node; it holds its runs as long as its lease."""
        ...

    async def beat(self, node_id: int, now: datetime, lease: timedelta) -> Heartbeat:
        """Extend a node's lease, even a lapsed one: what was taken from it meanwhile is fenced run by run. A node that
        was forgotten is told it is not alive."""
        ...

    async def set_draining(self, node_id: int, is_draining: bool) -> bool:
        """Have a node hear with its next beats whether it is to drain; answer whether there is such a node."""
        ...

    async def leave(self, node_id: int) -> None: ...

    async def nodes(self) -> list[NodeInfo]: ...

    async def lapsed(self, now: datetime, limit: int) -> list[Claimed]:
        """RUNNING runs of nodes whose lease has lapsed or that are gone, and runs whose deadline has passed."""
        ...

    async def prune(self, retention: Retention) -> int:
        """Forget old finished runs with their attempts and children (a child goes with its parent, never before), old
        alerts, gaps, audit entries and idempotency records, and buckets no longer busy, of each kind so many in a step;
        and lapsed nodes that hold nothing. Answer how many went of the kind of which most went, children not counted:
        the limit, if there may be more."""
        ...

    async def roll_up(self, until: datetime) -> int:
        """Fold runs that ended in whole minutes before `until` into minute aggregates; answer how many minutes."""
        ...

    async def minutes(self, since: datetime, until: datetime) -> list[Minute]:
        """Aggregates of each minute in the range, the current one included."""
        ...

    async def counts(self, now: datetime) -> Counts: ...

    async def find_idempotency(self, scope: str, key: str) -> IdempotencyRecord | None: ...

    async def add_key(self, key: StoredKey) -> None: ...

    async def keys(self) -> list[StoredKey]: ...

    async def revoke_key(self, key_id: str, now: datetime) -> bool: ...

    async def extent(self, section: Section) -> Extent:
        """How much a section holds and where it ends, found without reading all of it."""
        ...

    async def export(self, section: Section, after: str | None, limit: int) -> Exported:
        """Things of a section by rising key, from just behind `after`; at most `limit`. Items are domain values."""
        ...

    async def restore(self, section: Section, items: Sequence[Any]) -> int:
        """Put things in just as they are (ids, epochs, cursors and versions included), together or not at all.

        What is there already under the same key is left alone; answers how many were new. Ids handed out later lie
        above all that were restored. A Standing always counts: its identity is taken on, while `next_ids` and
        `rolled_until` only ever rise; a sequence that was unknown here is begun.
        """
        ...


class Hook(Protocol):
    """Somebody who is to hear of failures. `name` is what its alerts are stored under: the same on every node and after
    every restart, and without secrets, because people see it."""

    name: str

    async def deliver(self, alert: Alert) -> str:
        """Pass the alert on within ten seconds or so; answer nothing (an empty text) when it arrived, else why it did
        not. Never raises but for cancellation."""
        ...

    async def close(self) -> None:
        """Let go of connections."""
        ...


class Observer(Protocol):
    """Somebody who wants to know what happens. Called in batches, after the commit, and never waited for."""

    def on_fired(self, runs: Sequence[Claimed], gaps: Sequence[Gap], now: datetime) -> None:
        """Due slots became runs, or were left out; `now` is when that was stored."""
        ...

    def on_started(self, claimed: Sequence[Claimed], now: datetime) -> None:
        """This node begins attempts."""
        ...

    def on_moved(self, moves: Sequence[tuple[Move, Job | None]], now: datetime) -> None:
        """Runs moved: attempts ended, callbacks came, operators acted, leases lapsed."""
        ...

    def on_lost(self, run_ids: Iterable[int], now: datetime) -> None:
        """Results of this node came too late, because these runs had moved on: by a callback, by hand, by another node,
        or by the very same result, whose answer got lost."""
        ...

    def on_changed(self, jobs: Sequence[Job], runs: Sequence[Claimed], now: datetime) -> None:
        """Somebody made, changed or deleted jobs, or asked for runs outside a schedule."""
        ...

    def on_store(self, available: bool, error: str) -> None:
        """The store went away, or came back."""
        ...

    def on_clock_jump(self, jump: timedelta) -> None:
        """The wall clock was set by this much."""
        ...
