"""The ids of chain runs: a UUID made of the store's identity and the run's number, so that they are never taken for the
numbers of other runs. Without its dashes it is the run's trace id."""

from __future__ import annotations

from uuid import UUID

from ksana.engine.contexts import Contexts

_NUMBER = 2**64 - 1


def run_id_of(identity: int, number: int) -> str:
    """The id under which a run is shown."""
    return str(UUID(hex=Contexts(identity, "").trace_id(number)))


def number_of(identity: int, run_id: str) -> int | None:
    """The number of the run with this id; None if the id is another store's."""
    value = UUID(run_id).int
    return value & _NUMBER if value >> 64 == identity and value & _NUMBER < 2**63 else None
