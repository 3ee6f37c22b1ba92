"""What can go wrong with a schedule that code registers, in the words of its document.

InvalidArgument
└── InvalidSchedule             `register` refuses what cannot work, naming every field at fault
AlreadyExists
└── DuplicateSchedule           the id is taken; the first registration stands
RuntimeError
└── ScheduleRegistrationError   `must_register` failed, and the program should not start
StoreUnavailable
├── LockError                   Redis does not answer about a lock
└── StateError                  Redis does not answer about the state of a schedule
"""

from __future__ import annotations

from collections.abc import Iterable

from ksana.domain.errors import AlreadyExists, InvalidArgument, Problem, StoreUnavailable


class InvalidSchedule(InvalidArgument):
    """A schedule cannot work. `problems` lists every field at fault, not only the first."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        super().__init__(problems)
        self.message = f"invalid schedule: {self.message}"
        self.args = (self.message,)


class DuplicateSchedule(AlreadyExists):
    """The id is taken; the first registration stands."""

    def __init__(self, schedule_id: str) -> None:
        super().__init__(f"schedule with ID {schedule_id} already exists")


class ScheduleRegistrationError(RuntimeError):
    """A schedule the program cannot do without was refused."""


class LockError(StoreUnavailable):
    """Redis does not answer about a lock."""


class StateError(StoreUnavailable):
    """Redis does not answer about the state of a schedule."""
