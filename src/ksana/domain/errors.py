"""Errors that reach people: a stable code, a sentence that names the fix, and the fields at fault.

KsanaError
├── InvalidArgument      INVALID_ARGUMENT   a value is wrong; `problems` names every field
├── NotFound             NOT_FOUND          nothing has that id
├── AlreadyExists        ALREADY_EXISTS     the name or key is taken
├── VersionConflict      VERSION_CONFLICT   somebody changed it first
├── InvalidState         INVALID_STATE      the state table does not allow this move
├── ConcurrencyLimit     CONCURRENCY_LIMIT  the overlap policy refuses another run
├── StaleLease           STALE_LEASE        a newer attempt owns the run
├── VerifyCapReached     VERIFY_CAP_REACHED the object cannot be known and was verified as often as it may be
└── StoreUnavailable     STORE_UNAVAILABLE  the store does not answer; nothing was acknowledged
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, NamedTuple


class Problem(NamedTuple):
    """One thing wrong with an input: where (a dotted path such as `schedule.every`) and what to do about it."""

    field: str
    message: str


class KsanaError(Exception):
    """Base of every error meant for people."""

    code: ClassVar[str] = "INTERNAL"

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class InvalidArgument(KsanaError):
    """A value is wrong. `problems` lists every field at fault, not only the first."""

    code = "INVALID_ARGUMENT"

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = list(problems)
        super().__init__("; ".join(f"{p.field}: {p.message}" if p.field else p.message for p in self.problems))

    @classmethod
    def of(cls, field: str, message: str) -> InvalidArgument:
        """The common case: one field, one sentence."""
        return cls([Problem(field, message)])


class NotFound(KsanaError):
    """Nothing has that id."""

    code = "NOT_FOUND"


class AlreadyExists(KsanaError):
    """The name or key is taken."""

    code = "ALREADY_EXISTS"


class VersionConflict(KsanaError):
    """Somebody changed it first; read it again and repeat."""

    code = "VERSION_CONFLICT"


class InvalidState(KsanaError):
    """The state table does not allow this move."""

    code = "INVALID_STATE"


class ConcurrencyLimit(KsanaError):
    """The overlap policy refuses another run."""

    code = "CONCURRENCY_LIMIT"


class StaleLease(KsanaError):
    """A newer attempt owns the run; this writer lost it."""

    code = "STALE_LEASE"


class VerifyCapReached(KsanaError):
    """The object cannot be known and was verified as often as it may be."""

    code = "VERIFY_CAP_REACHED"


class StoreUnavailable(KsanaError):
    """The store does not answer; nothing was acknowledged."""

    code = "STORE_UNAVAILABLE"
