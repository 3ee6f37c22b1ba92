"""Passing on: the only step under way of a chain ends, and the steps that waited for it go to whoever ended it.

What follows is foreseen from the chain in memory and written in one go, on condition that the family still stands
under the stamp by which it is known. Where it is not so simple nothing is done, and the turn goes its usual way.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import NamedTuple

from ksana.domain.alerts import Alert
from ksana.domain.chains import Heirs
from ksana.domain.claims import Claim
from ksana.domain.runs import Run
from ksana.domain.states import State
from ksana.stores.sql.families import FEW, Families, Known, passed_by
from ksana.stores.sql.move_rows import Change
from ksana.stores.sql.moving import Moves, ended_as
from ksana.stores.sql.rows import Row
from ksana.stores.sql.turns import TurnRows
from ksana.stores.sql.tx import Ended, Relay, Told, Tx

_NOBODY: frozenset[int] = frozenset()


class Leg(NamedTuple):
    """The success of one step, of which nothing is written but its row, an attempt that its row cannot tell of, and
    what is kept of it for others."""

    run: Run
    parent_id: int
    change: Change
    told: Told
    attempt: Row | None
    kept: Row | None
    claim: Claim


def leg_of(moves: Moves, claim: Claim | None, alerts: Sequence[Alert]) -> Leg | None:
    """These moves as a leg, if they are one."""
    if claim is None or not claim.for_followers or len(moves.tried) != 1 or alerts:
        return None
    [move] = moves.tried.values()
    [(change, told)] = moves.alike
    run = move.run
    if run.state is not State.SUCCESS or run.parent_id is None or run.job_id is not None or move.attempt is None:
        return None
    if moves.exchanges or moves.taken or moves.inputs:
        return None
    attempt = moves.attempts[0] if moves.attempts else None
    kept = moves.kept[0][1] if moves.kept else None
    return Leg(run, run.parent_id, change, told, attempt, kept, claim)


def may_pass_on(families: Families, leg: Leg) -> bool:
    """Whether it looks simple. The family may be moving at this very moment, so only `pass_on` knows for certain."""
    return _heirs(families.known(leg.parent_id), leg) is not None


def _heirs(known: Known | None, leg: Leg) -> Heirs | None:
    """The runs of the heirs, if there are any and not too many."""
    if known is None:
        return None
    starts, passes = known.chain.heirs(leg.run.id - known.first)
    if not starts or len(starts) > min(FEW, leg.claim.limit):
        return None
    return Heirs([known.first + place for place in starts], [known.first + place for place in passes])


async def pass_on(tx: Tx, families: Families, leg: Leg) -> TurnRows | None:
    """End a step and hand its heirs over; None if it is not so simple, and then nothing has changed but the stamp."""
    known, change = families.known(leg.parent_id), leg.change
    heirs = _heirs(known, leg)
    if known is None or heirs is None:
        return None
    stamp = secrets.randbits(62)
    ended = Ended(leg.told, change.epoch, ended_as(change), leg.attempt, leg.kept)
    relayed = await tx.pass_on(Relay(leg.parent_id, known.stamp, stamp, ended, *heirs, leg.claim))
    if relayed is None:
        return None
    known.chain.ended([(leg.run.id - known.first, leg.run.state)])
    known.chain.advance()
    families.take(leg.parent_id, known.stamp)
    families.keep(leg.parent_id, Known(stamp, known.first, known.chain))
    return TurnRows(_NOBODY, len(heirs.starts), relayed.heirs, {}, passed_by(relayed.passed))
