"""The schedules of a program: validated when registered, each id once, and when each of them fires."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, tzinfo
from threading import Lock
from typing import Final, overload

import msgspec

from ksana.domain.errors import InvalidArgument, KsanaError, Problem
from ksana.domain.schedules import compiled
from ksana.domain.times import zone
from ksana.periodic.errors import DuplicateSchedule, InvalidSchedule, ScheduleRegistrationError
from ksana.periodic.schedule import JobPriority, Schedule

_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,128}")
_SIX_FIELDS: Final = 6
_TICK: Final = timedelta(microseconds=1)


class Registry:
    """Schedules by id, safe to use from several threads."""

    def __init__(self) -> None:
        self._schedules: dict[str, Schedule] = {}
        self._lock = Lock()

    @overload
    def register(self, schedule: Schedule, /) -> None: ...
    @overload
    def register(self, id: str, schedule: Schedule, /) -> None: ...
    def register(self, first: str | Schedule, second: Schedule | None = None, /) -> None:
        """Add a schedule; an id given apart from it fills in or repeats its own. InvalidSchedule or DuplicateSchedule
        if that cannot be."""
        schedule = _identified(first, second)
        problems = list(_problems(schedule))
        if problems:
            raise InvalidSchedule(problems)
        with self._lock:
            if schedule.id in self._schedules:
                raise DuplicateSchedule(schedule.id)
            self._schedules[schedule.id] = schedule

    @overload
    def must_register(self, schedule: Schedule, /) -> None: ...
    @overload
    def must_register(self, id: str, schedule: Schedule, /) -> None: ...
    def must_register(self, first: str | Schedule, second: Schedule | None = None, /) -> None:
        """The same for a program that must not start without this schedule: ScheduleRegistrationError if refused."""
        try:
            self.register(_identified(first, second))
        except KsanaError as error:
            raise ScheduleRegistrationError(f"failed to register schedule: {error}") from error

    def get(self, id: str) -> Schedule | None:
        """The schedule of that id, if there is one."""
        return self._schedules.get(id)

    def list(self) -> list[Schedule]:
        """All schedules in the order they were registered; the list is the caller's own."""
        with self._lock:
            return [*self._schedules.values()]

    def next_run(self, schedule: Schedule, after: datetime) -> datetime:
        """The first fire strictly after an instant, in UTC. InvalidArgument if the schedule has become unusable."""
        if after.tzinfo is None:
            raise InvalidArgument.of("after", "has no zone; use an aware datetime")
        found = compiled(schedule.cron, "cron").next_after(after, _zone_of(schedule))
        if found is None:
            raise InvalidArgument.of("cron", f'"{schedule.cron}" does not fire again before the year 10000')
        return found

    def latest_run(self, schedule: Schedule, until: datetime) -> datetime | None:
        """The last fire at or before an instant."""
        return compiled(schedule.cron, "cron").previous_before(until + _TICK, _zone_of(schedule))


def _identified(first: str | Schedule, second: Schedule | None) -> Schedule:
    if isinstance(first, Schedule):
        return first
    if second is None:
        raise TypeError("register takes a schedule, or an id and a schedule")
    if second.id not in ("", first):
        raise InvalidSchedule([Problem("id", f'"{first}" was given for a schedule with the id "{second.id}"')])
    return msgspec.structs.replace(second, id=first)


def _zone_of(schedule: Schedule) -> tzinfo:
    name = schedule.timezone
    if name in ("", "UTC"):
        return UTC
    try:
        return _zone(name)
    except InvalidArgument as error:
        raise InvalidArgument.of("", f"invalid timezone {name}: {error.problems[0].message}") from error


def _zone(name: str) -> tzinfo:
    # An offset is a zone everywhere else in this program, but not an IANA name, and it knows no daylight saving.
    if isinstance(name, str) and name[:1] in ("+", "-"):
        raise InvalidArgument.of("timezone", f'"{name}" is an offset; write an IANA name such as "Asia/Shanghai"')
    return zone(name)


def _problems(schedule: Schedule) -> Iterator[Problem]:
    if not isinstance(schedule.id, str) or not _ID.fullmatch(schedule.id):
        yield Problem("id", "must be 1 to 128 letters, digits, underscores and hyphens")
    yield from _cron_problems(schedule.cron)
    if not isinstance(schedule.job, str) or not schedule.job:
        yield Problem("job", "name the job to enqueue")
    yield from _payload_problems(schedule.payload)
    if schedule.priority not in frozenset(JobPriority):
        yield Problem("priority", f"must be one of {', '.join(JobPriority)}")
    if schedule.timezone != "":
        try:
            _zone(schedule.timezone)
        except InvalidArgument as error:
            yield from error.problems
    if not isinstance(schedule.enabled, bool):
        yield Problem("enabled", "must be True or False")


def _cron_problems(cron: str) -> Iterator[Problem]:
    try:
        compiled(cron, "cron")
    except InvalidArgument as error:
        yield from error.problems
        return
    if len(cron.split()) == _SIX_FIELDS:
        yield Problem("cron", "expected 5 fields (minute hour day month weekday) or an alias such as @daily, got 6")


def _payload_problems(payload: bytes) -> Iterator[Problem]:
    if not isinstance(payload, bytes):
        yield Problem("payload", f"must be JSON as bytes, got {type(payload).__name__}")
    elif payload:
        try:
            msgspec.json.decode(payload)
        except msgspec.DecodeError as error:
            yield Problem("payload", f"is not JSON: {error}")
