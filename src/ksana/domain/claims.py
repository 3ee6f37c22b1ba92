"""Claims: how a node asks for due runs, and what a turn or a fire gives it to hold."""

from __future__ import annotations

from datetime import datetime

import msgspec

from ksana.domain.fires import Gap
from ksana.domain.jobs import Job
from ksana.domain.moves import Move
from ksana.domain.runs import Run


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """A wish for work: at most `limit` due runs of these queues, to be held by this node. Who knows that nothing else
    is due asks `for_followers` only: what the moves of the same turn let in."""

    node_id: int
    now: datetime
    limit: int
    queues: tuple[str, ...]
    for_followers: bool = False


class Claimed(msgspec.Struct, frozen=True, gc=False):
    """A run this node now holds, with the job it belongs to (None for an item of the queue)."""

    run: Run
    job: Job | None


class Turn(msgspec.Struct, frozen=True):
    """What a turn did: the runs whose moves came too late (somebody else moved them first), the runs claimed, how many
    that waited for a slot or for what they depend on were let in, and what followed: steps that do nothing and were
    done, and runs that ended because their children have.
    """

    lost: frozenset[int]
    claimed: list[Claimed]
    admitted: int = 0
    followed: list[tuple[Move, Job | None]] = []


class Fired(msgspec.Struct, frozen=True):
    """What firing did: runs that now exist, each with its job; gaps recorded; how many due jobs were looked at."""

    runs: list[Claimed]
    gaps: list[Gap]
    looked_at: int
