"""Objects that items of the queue are about: how risky and how certain they are, what may be done about them, and how
often they may be verified. What a worker says of one goes through `written_back`, which refuses what is not legal."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

import msgspec

from ksana.domain.errors import InvalidState

DEFAULT_BUDGET: Final = 2
DEFAULT_CAP: Final = 3
VERIFYING: Final = frozenset({"verify", "revalidate"})
"""The actions that are counted against a budget."""


class Risk(StrEnum):
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"


class Epistemic(StrEnum):
    """How sure one may be of an object."""

    UNASSESSED = "unassessed"
    UNCERTAIN = "uncertain"
    SUPPORTED = "supported"
    REFUTED = "refuted"
    ARCHIVED = "archived"


class UnknownType(StrEnum):
    """Why something is not known: because nobody has found out yet, or because nobody can."""

    EPISTEMIC = "epistemic"
    ONTIC = "ontic_unknowable"


class Gate(StrEnum):
    """What a gate says. LIMIT lets an item through, one of its object at a time; the last two keep it in the queue."""

    PASS = "pass"  # noqa: S105
    LIMIT = "limit"
    DEFER = "defer"
    BLOCK = "block"


GATES: Final = ("persona", "cognition")


class GovernedObject(msgspec.Struct, frozen=True, kw_only=True):
    """An object as it is known here. `version` rises by one with every change; `verified` counts hand-outs of items
    that verify it while it is uncertain, `tried` those while it cannot be known."""

    type: str
    id: str
    version: int = 1
    risk: Risk = Risk.LOW
    epistemic: Epistemic = Epistemic.UNASSESSED
    unknown: UnknownType | None = None
    budget: int = DEFAULT_BUDGET
    verified: int = 0
    cap: int = DEFAULT_CAP
    tried: int = 0
    gates: dict[str, Gate] = {}
    next_action_at: datetime | None = None
    evidence: str | None = None
    attributes: dict[str, Any] = {}
    created_at: datetime
    updated_at: datetime

    @property
    def subject(self) -> str:
        """What items about it name."""
        return subject_of(self.type, self.id)

    @property
    def is_held_back(self) -> bool:
        """Whether its gates keep its items in the queue. A risky object nobody has judged is held back, to be safe."""
        return self.risk is Risk.HIGH and any(
            self.gates.get(gate, Gate.BLOCK) in (Gate.DEFER, Gate.BLOCK) for gate in GATES
        )

    @property
    def is_one_at_a_time(self) -> bool:
        return self.risk is Risk.HIGH and Gate.LIMIT in self.gates.values()


class ObjectQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which objects, by type and id. `due_before` is about when they want to be seen to next."""

    type: str | None = None
    risk: Risk | None = None
    epistemic: Epistemic | None = None
    due_before: datetime | None = None
    offset: int = 0
    limit: int = 50


def subject_of(type: str, id: str) -> str:
    """The name of an object among all types."""
    return f"{type}/{id}"


def action_of(step: str | None) -> str:
    """What an item of this type does, as `memory.verify` verifies."""
    return (step or "").rpartition(".")[2]


def why_not_verified(governed: GovernedObject, action: str) -> str:
    """Why an object must not be verified once more; an empty text if it may be."""
    if action not in VERIFYING:
        return ""
    if governed.unknown is UnknownType.ONTIC and governed.tried >= governed.cap:
        return (
            f"unknowable_verify_cap reached: {governed.subject} cannot be known, and {governed.tried} tries were made"
        )
    if governed.epistemic is Epistemic.UNCERTAIN and governed.verified >= governed.budget:
        return f"auto_verify_budget exhausted: {governed.subject} was verified {governed.verified} times"
    return ""


def spent(governed: GovernedObject, action: str, now: datetime) -> GovernedObject:
    """The object after an item about it was handed out; itself if that costs nothing."""
    if action not in VERIFYING:
        return governed
    is_uncertain = governed.epistemic is Epistemic.UNCERTAIN
    is_unknowable = governed.unknown is UnknownType.ONTIC
    if not is_uncertain and not is_unknowable:
        return governed
    return msgspec.structs.replace(
        governed,
        version=governed.version + 1,
        verified=governed.verified + is_uncertain,
        tried=governed.tried + is_unknowable,
        updated_at=now,
    )


_ASSESSED = frozenset({Epistemic.UNCERTAIN, Epistemic.SUPPORTED, Epistemic.REFUTED})

MOVES: Final[Mapping[str, Mapping[Epistemic, frozenset[Epistemic]]]] = {
    "verify": {Epistemic.UNASSESSED: _ASSESSED, Epistemic.UNCERTAIN: _ASSESSED},
    "revalidate": {Epistemic.SUPPORTED: _ASSESSED, Epistemic.UNCERTAIN: _ASSESSED},
    "decay": {Epistemic.SUPPORTED: frozenset({Epistemic.UNCERTAIN})},
    "archive": {state: frozenset({Epistemic.ARCHIVED}) for state in (Epistemic.UNASSESSED, *sorted(_ASSESSED))},
    "reinstate-check": {
        Epistemic.ARCHIVED: frozenset({Epistemic.UNCERTAIN}),
        Epistemic.REFUTED: frozenset({Epistemic.UNCERTAIN}),
    },
}
"""Where an action may lead to, by where the object stands. What stays as it is is always legal."""


def written_back(
    governed: GovernedObject,
    action: str,
    now: datetime,
    *,
    next_action_at: datetime | None = None,
    epistemic: Epistemic | None = None,
    evidence: str | None = None,
) -> GovernedObject:
    """The object after an item about it was done; what is left unsaid stays as it is. InvalidState if the action cannot
    lead to that."""
    to = epistemic or governed.epistemic
    if to is not governed.epistemic and to not in MOVES.get(action, {}).get(governed.epistemic, frozenset()):
        raise InvalidState(f"{governed.subject} is {governed.epistemic}; {action} cannot make it {to}")
    return msgspec.structs.replace(
        governed,
        version=governed.version + 1,
        epistemic=to,
        next_action_at=next_action_at or governed.next_action_at,
        evidence=evidence or governed.evidence,
        updated_at=now,
    )
