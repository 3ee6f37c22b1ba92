"""Whole turns: where a database can change several tables by one statement, the ordinary turn is one round trip.

Ordinary is a turn whose results all move alike, are told in the rows of their runs and let nobody else in. A statement
is a transaction by itself: the ends, what went over the wire and the claims are one commit, as ever.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from ksana.domain.alerts import Alert
from ksana.domain.claims import Claim
from ksana.domain.times import to_micros
from ksana.stores.sql.claiming import claim_order
from ksana.stores.sql.move_rows import Change
from ksana.stores.sql.moving import Moves, ended_as
from ksana.stores.sql.rows import Row
from ksana.stores.sql.statements import (
    CLAIM_BY_PRIORITY,
    DUE_BY_PRIORITY,
    END_RUNS,
    ENDED_AS_TOLD,
    RETURNING_CLAIMED,
    Statement,
)
from ksana.stores.sql.tables import EXCHANGES
from ksana.stores.sql.tx import Told, Tx

_END = f"WITH ended AS ({END_RUNS.text} RETURNING ksana_runs.id)"
_KEEP = (
    f", kept AS (INSERT INTO ksana_exchanges ({', '.join(EXCHANGES.names)})"
    " SELECT e.run_id, :epoch, e.head, e.request_body, e.response_body FROM unnest(CAST(:run_ids AS bigint[]),"
    " CAST(:heads AS bytea[]), CAST(:request_bodies AS bytea[]), CAST(:response_bodies AS bytea[]))"
    " AS e(run_id, head, request_body, response_body) WHERE e.run_id IN (SELECT id FROM ended))"
)
# Nothing is claimed before all is ended: whoever has to wait for a run that is to end holds no other meanwhile.
_AFTER_THE_ENDS = "AND (SELECT COUNT(*) FROM ended) >= 0"
_CLAIM = f", {DUE_BY_PRIORITY}, claimed AS ({CLAIM_BY_PRIORITY} {_AFTER_THE_ENDS} {RETURNING_CLAIMED})"
# Mostly all of them have ended; only if not it is told which did.
_TELL = " SELECT CASE WHEN (SELECT COUNT(*) FROM ended) < :count THEN ARRAY(SELECT id FROM ended) END"
_TELL_CLAIMED = f"{_TELL}, claimed.* FROM (SELECT 1) one LEFT JOIN claimed ON TRUE"
_STATEMENTS = {
    (keeps, claims): Statement(
        _END + (_KEEP if keeps else "") + (_CLAIM + _TELL_CLAIMED if claims else _TELL),
    )
    for keeps in (False, True)
    for claims in (False, True)
}

# Rows that are claimed go through the statement once more than they would by themselves: of more than this many that
# costs the server as much as the round trips cost this side.
_FEW = 200


class Whole(NamedTuple):
    """A turn that one statement can do: results that end their runs in the same way, and maybe a claim."""

    change: Change
    told: Told
    exchanges: list[tuple[Any, ...]]
    claim: Claim | None


class Done(NamedTuple):
    """What it did: the runs that ended, or None if all of them have, and the rows claimed."""

    ended: list[int] | None
    claimed: list[Row]


def whole_of(moves: Moves, claim: Claim | None, alerts: Sequence[Alert]) -> Whole | None:
    """These moves and this claim as one statement can do them; None if there is more to it."""
    if alerts or len(moves.alike) != 1:
        return None
    if claim is not None and (claim.limit > _FEW or claim.for_followers or len(set(claim.queues)) != 1):
        return None
    [(change, told)] = moves.alike
    if not change.is_told or moves.frees_slots:
        return None
    if moves.taken or moves.kept or moves.inputs or moves.branches or moves.parents:
        return None
    return Whole(change, told, moves.exchanges, claim)


async def end_and_claim(tx: Tx, whole: Whole) -> Done:
    change, claim, exchanges = whole.change, whole.claim, whole.exchanges
    values = {**ended_as(change), "epoch": change.epoch, "told": _encoded(whole.told), "count": len(whole.told)}
    if exchanges:
        values |= zip(
            ("run_ids", "epochs", "heads", "request_bodies", "response_bodies"),
            zip(*exchanges, strict=True),
            strict=True,
        )
    if claim is not None:
        values |= {"queue": claim.queues[0], "now": to_micros(claim.now), "limit": claim.limit}
        values["node_id"] = claim.node_id
    rows = await tx.rows(_STATEMENTS[bool(exchanges), claim is not None], **values)
    ended: list[int] | None = rows[0][0]
    if claim is None:
        return Done(ended, [])
    # A turn that claimed nothing answers one row without a run.
    claimed: list[Row] = [row[1:] for row in rows if row[1] is not None]
    claimed.sort(key=claim_order)
    return Done(ended, claimed)


async def lost(tx: Tx, whole: Whole, ended: Sequence[int]) -> frozenset[int]:
    """The runs that somebody else has moved: neither ended by this turn nor by one that told the same."""
    before = await tx.rows(ENDED_AS_TOLD, told=_encoded(whole.told), epoch=whole.change.epoch)
    return frozenset(whole.told).difference(ended, [row[0] for row in before])


def _encoded(told: Told) -> str:
    return msgspec.json.encode(told).decode()
