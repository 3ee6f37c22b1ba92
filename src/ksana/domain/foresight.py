"""Deciding ahead: what a slot becomes if it is found in time and has room, worked out before its instant has come.

A prospect changes no rule: it is what `decide` says of that case, and whoever fires it makes sure that this is the
case.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec

from ksana.domain.fires import Draws, DueJob, Lateness, decide
from ksana.domain.jobs import Job
from ksana.domain.moves import advance
from ksana.domain.runs import Run
from ksana.domain.schedules import Once
from ksana.domain.states import Event, State

_TICK = timedelta(microseconds=1)

_replace = msgspec.structs.replace


class Prospect(msgspec.Struct, frozen=True):
    """A slot that is about to come due: its run, still without id and instant; the same run held by this node, if this
    node may claim it; and where the cursor goes.

    It stands while the job has this version and its cursor this place, if there is room for one more of its runs, and
    no longer than `good_until`.
    """

    job: Job
    slot_at: datetime
    fire_at: datetime
    good_until: datetime
    run: Run
    claimed: Run | None
    next_slot_at: datetime | None
    next_fire_at: datetime | None

    def stands(self, due: DueJob) -> bool:
        """Whether the job has come due as it was foreseen."""
        limit = self.job.overlap.limit
        is_same = (due.job.version, due.slot_at, due.fire_at) == (self.job.version, self.slot_at, self.fire_at)
        return is_same and (limit is None or due.active < limit)


class Foreseen(msgspec.Struct, frozen=True):
    """Prospects that come due at one instant, those that this node may claim first and in the order of claims; with
    whatever their store has made of them so as to have less to do then."""

    prospects: Sequence[Prospect]
    own: Any = None

    def is_good(self, now: datetime) -> bool:
        """Whether they have come due, all of them, and none is too late to be what was foreseen."""
        return all(one.fire_at <= now <= one.good_until for one in self.prospects)


class Sight(msgspec.Struct, frozen=True):
    """What a look at one instant has found, and the last job it looked at; None if there are no more."""

    foreseen: Foreseen
    through: int | None = None


class Births(msgspec.Struct, frozen=True):
    """What runs get when they come to be: the instant, an id for each prospect, and for how many of the first of them
    this node has room, so that they are born claimed by it."""

    now: datetime
    ids: Sequence[int]
    claims: int


def foresee(due: DueJob, lateness: Lateness, draws: Draws, node_id: int | None) -> Prospect | None:
    """What becomes of the job's next slot if nothing comes in between; None if that is not one run ready to go.
    `node_id` names the node that may claim it."""
    job, at = due.job, due.fire_at
    fire = decide(DueJob(job, due.slot_at, at, 0), at, lateness, _Nameless(draws))
    if len(fire.runs) != 1 or fire.gaps or fire.runs[0].state is not State.SCHEDULED:
        return None
    [run] = fire.runs
    if isinstance(job.schedule, Once):
        good_until = due.slot_at + lateness.grace
    else:
        good_until = at + lateness.threshold
        if fire.next_slot_at is not None:
            # Later than that there are two slots to decide about.
            good_until = min(good_until, fire.next_slot_at - _TICK)
    return Prospect(
        job=job,
        slot_at=due.slot_at,
        fire_at=at,
        good_until=good_until,
        run=run,
        claimed=None if node_id is None else advance(run, Event.CLAIM, at, node_id=node_id),
        next_slot_at=fire.next_slot_at,
        next_fire_at=fire.next_fire_at,
    )


def in_order(prospects: Sequence[Prospect]) -> list[Prospect]:
    """Prospects of one instant as Foreseen has them."""
    return sorted(prospects, key=_claim_order)


def _claim_order(prospect: Prospect) -> tuple[bool, int, int]:
    return prospect.claimed is None, -prospect.run.priority, prospect.job.id


def born(prospects: Sequence[Prospect], births: Births) -> list[Run]:
    """The runs that come of these prospects."""
    now, claims = births.now, births.claims
    return [
        _replace(one.claimed, id=run_id, created_at=now, started_at=now)
        if i < claims and one.claimed is not None
        else _replace(one.run, id=run_id, created_at=now)
        for i, (one, run_id) in enumerate(zip(prospects, births.ids, strict=True))
    ]


class _Nameless:
    """Draws for a run that gets its id when its instant has come."""

    def __init__(self, draws: Draws) -> None:
        self.jitter = draws.jitter
        self.token = draws.token

    def run_id(self) -> int:
        return 0
