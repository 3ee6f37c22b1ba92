"""A run is one occurrence of work; an attempt is one try at it. Plain values: `states.advance` is what changes them."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

import msgspec

from ksana.domain.outcomes import Exchange, Verdict
from ksana.domain.policies import Priority
from ksana.domain.states import Reason, State

DEFAULT_QUEUE = "default"

# `gc=False` on what comes by the thousand: it can hold no reference to itself, so the cycle collector need not look.


class Trigger(StrEnum):
    """What made the run. APART is a run asked for by hand beside the overlap rule: it does not obey the limit of its
    job, nor count against it."""

    SCHEDULE = "schedule"
    CATCH_UP = "catch_up"
    MANUAL = "manual"
    APART = "apart"
    CHAIN = "chain"
    ENQUEUE = "enqueue"


class Run(msgspec.Struct, frozen=True, gc=False):
    """One occurrence of work and where it stands. Say its values by their names; only what makes runs by the thousand
    says them by their places, which costs a fifth.

    `epoch` rises with every move, whoever makes it, so (id, epoch) names one moment of a run's life and a writer
    that holds an older epoch has lost. `slot_at` is set only for planned runs and unique per job. `holder` is the
    worker an item of the queue was last handed out to, and `subject` what the item is about: an object, or a key its
    sender gave.
    """

    id: int
    due_at: datetime
    created_at: datetime
    job_id: int | None = None
    job_version: int = 0
    surface: str = ""
    kind: str = ""
    queue: str = DEFAULT_QUEUE
    trigger: Trigger = Trigger.MANUAL
    slot_at: datetime | None = None
    state: State = State.SCHEDULED
    reason: Reason | None = None
    epoch: int = 0
    attempt: int = 0
    failures: int = 0
    reclaims: int = 0
    priority: Priority = Priority.NORMAL
    deadline_at: datetime | None = None
    node_id: int | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    error: str = ""
    callback_token: str | None = None
    parent_id: int | None = None
    step: str | None = None
    input: bytes | None = None
    holder: str | None = None
    subject: str | None = None

    @property
    def planned_at(self) -> datetime:
        """The instant this run stands for: its slot, or the moment it was asked for."""
        return self.slot_at or self.created_at

    @property
    def holds_slot(self) -> bool:
        """Whether the run counts against the limit of its job while it is unfinished."""
        return self.trigger is not Trigger.APART


class Attempt(msgspec.Struct, frozen=True, gc=False):
    """One try at a run: when, where, how it ended, what went over the wire."""

    run_id: int
    number: int
    epoch: int
    started_at: datetime
    ended_at: datetime
    verdict: Verdict
    node_id: int | None = None
    timed_out: bool = False
    code: int | None = None
    error: str = ""
    result: bytes | None = None
    exchange: Exchange | None = None


class LastAttempt(msgspec.Struct, frozen=True, gc=False):
    """The newest attempt of a run; `bodies_omitted` if what it sent and received is more than was asked for."""

    attempt: Attempt
    bodies_omitted: bool = False
