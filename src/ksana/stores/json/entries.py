"""Reading job entries back, those that somebody wrote or edited by hand while the server was stopped included.

A documented field always counts. `core` adds what the fields do not say; an entry without it is a new job. Where the
schedule, `enabled` or `next_run_at` no longer is what was written, somebody edited it, and the cursor follows.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, NamedTuple, TypeVar
from urllib.parse import urlsplit

import msgspec

from ksana.domain.durations import parse_duration
from ksana.domain.errors import InvalidArgument, Problem
from ksana.domain.jobs import Job, TargetSpec
from ksana.domain.schedules import CronSchedule, Every, Once, Schedule, fire_at, first_slot
from ksana.domain.standing import INVALID
from ksana.domain.times import parse_instant
from ksana.domain.validation import NAME_LENGTH, REF_LENGTH, problems_of
from ksana.stores.json.format import (
    KIND,
    MAX_RETRIES,
    MISFIRE,
    OVERLAP,
    RETRY,
    SURFACE,
    TIMEOUTS,
    Core,
    core_of,
    seal_of,
    shown_instant,
    shown_span,
    target_of,
)

T = TypeVar("T")

_replace = msgspec.structs.replace
_METHODS = ("GET", "POST")
# As the surface has it, and every HTTP target.
_METHOD = "POST"
# As the surface has it, where an id stands in a path.
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._~:@-]{0,127}")
_BESIDE = (
    *("version", "created_at", "updated_at", "paused_at", "description", "tags", "queue", "priority"),
    *("on_uncertain", "awaits_callback", "paused_until", "pause_reason"),
)


class Circumstances(NamedTuple):
    """What reading an entry needs to know beside it: when it is, a fresh id, a draw for jitter."""

    now: datetime
    new_id: Callable[[], int]
    jitter: Callable[[], float]


class Read(NamedTuple):
    """An entry as a job. `problem` says why it is not good as it stands; the job is then disabled and a stand-in."""

    job: Job
    problem: str = ""


def read_entry(raw: Any, around: Circumstances) -> Read:
    """The job that an entry of `jobs` says."""
    entry = raw if isinstance(raw, dict) else {}
    core = _core(entry.get("core"))
    extras = {} if core is None else {name: text for name, text in core.extras.items() if name != INVALID}
    fields = _Fields(entry, extras)
    if entry is not raw:
        fields.refuse("", "a job is an object")
    moved_to = _moved_to(fields, core)
    job = _job(fields, core, moved_to, around)
    problems = fields.problems or problems_of(job)
    if problems:
        problem = str(InvalidArgument(problems))
        return Read(_stand_in(fields.raw, job, problem, around.now), problem)
    return Read(_planned(job, fields, core, moved_to, around))


def _core(raw: Any) -> Core | None:
    try:
        return msgspec.convert(raw, Core)
    except msgspec.ValidationError:
        # Nobody needs to know what belongs there: without it the entry is a job like a new one.
        return None


class _Fields:
    """An entry looked at field by field; whatever is wrong is noted, and a harmless value stands in for it."""

    def __init__(self, raw: dict[str, Any], extras: dict[str, Any]) -> None:
        self.raw = raw
        self.extras = extras
        self.problems: list[Problem] = []
        self._prefix = ""

    def value(self, name: str, kind: type[T], default: T) -> T:
        value = self.raw.get(name)
        if value is None:
            return default
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            self.refuse(name, f"expected {_KINDS[kind]}, got {type(value).__name__}")
            return default
        return value

    def refuse(self, name: str, message: str) -> None:
        self.problems.append(Problem(self._prefix + name, message))

    def duration(self, name: str, default: timedelta) -> timedelta:
        """A span; how it is written is kept, as the surface keeps it."""
        span = self._parsed(name, parse_duration)
        if span is None:
            return default
        if shown_span(self.extras, name, span) != self.raw[name]:
            self.extras[name] = self.raw[name]
        return span

    def instant(self, name: str) -> datetime | None:
        return self._parsed(name, parse_instant)

    def _parsed(self, name: str, parse: Callable[[str, str], T]) -> T | None:
        value = self.raw.get(name)
        if value is None or value == "":
            return None
        try:
            return parse(value, self._prefix + name)
        except InvalidArgument as error:
            self.problems += error.problems
            return None

    def inside(self, name: str) -> _Fields:
        inner = _Fields(self.value(name, dict, {}), self.extras)
        inner.problems, inner._prefix = self.problems, f"{self._prefix}{name}."
        return inner


_KINDS: dict[type, str] = {str: "text", bool: "true or false", int: "a whole number", dict: "an object"}


def _moved_to(fields: _Fields, core: Core | None) -> datetime | None:
    """The instant of the next run if the file names another than was written."""
    said = fields.instant("next_run_at")
    return None if core is not None and shown_instant(said) == shown_instant(_next_of(core)) else said


def _next_of(core: Core) -> datetime | None:
    return core.next_fire_at or core.next_slot_at


def _job(fields: _Fields, core: Core | None, moved_to: datetime | None, around: Circumstances) -> Job:
    if fields.value("type", str, KIND) != KIND:
        fields.refuse("type", "must be http")
    ref = fields.value("id", str, "")
    if ref and core is None and not _ID.fullmatch(ref):
        fields.refuse("id", "use up to 128 letters, digits and . _ ~ : @ -, beginning with one of the first two")
    ref = ref or secrets.token_hex(16)
    enabled = fields.value("enabled", bool, True)
    retries = fields.value("max_retries", int, MAX_RETRIES)
    backoff = fields.duration("retry_backoff", RETRY.initial_delay)
    total = fields.duration("timeout", TIMEOUTS.total)
    return Job(
        id=around.new_id() if core is None else core.id,
        surface=SURFACE,
        ref=ref,
        name=fields.value("name", str, "") or ref,
        enabled=enabled,
        target=_target(fields.inside("http"), core),
        schedule=_schedule(fields, core, moved_to, around.now),
        retry=_replace((core and core.retry) or RETRY, max_attempts=1 + retries, initial_delay=backoff),
        timeouts=_replace((core and core.timeouts) or TIMEOUTS, total=total),
        overlap=(core and core.overlap) or OVERLAP,
        misfire=(core and core.misfire) or MISFIRE,
        extras=fields.extras,
        **_beside(core, enabled, around.now),
    )


def _beside(core: Core | None, enabled: bool, now: datetime) -> dict[str, Any]:
    """What the documented fields do not say."""
    if core is None:
        return {"created_at": now, "updated_at": now, "paused_at": None if enabled else now}
    said = {name: getattr(core, name) for name in _BESIDE}
    if enabled != core.enabled:
        said |= {"paused_at": None if enabled else now, "paused_until": None, "pause_reason": ""}
    return said


def _target(http: _Fields, core: Core | None) -> TargetSpec:
    method = http.value("method", str, "").upper() or _METHOD
    if method not in _METHODS:
        http.refuse("method", f"must be one of {', '.join(_METHODS)}")
        method = _METHOD
    url = http.value("url", str, "")
    try:
        parts = urlsplit(url)
        is_absolute = parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        is_absolute = False
    if not is_absolute:
        http.refuse("url", "must be an absolute http or https URL")
    headers = http.value("headers", dict, {})
    if not all(isinstance(value, str) for value in headers.values()):
        http.refuse("headers", "must be an object of text")
    return target_of(core, {"method": method, "url": url, "headers": headers, "body": http.value("body", str, "")})


def _schedule(fields: _Fields, core: Core | None, moved_to: datetime | None, now: datetime) -> Schedule | None:
    said = fields.inside("schedule")
    if _is_edited(fields, core):
        core = None
    end_at = None if core is None else core.end_at
    match said.value("kind", str, ""):
        case "once":
            run_at = said.instant("run_at")
            if not said.raw.get("run_at"):
                said.refuse("run_at", "is required")
            return None if run_at is None else Once(run_at)
        case "every":
            every = said.duration("every", timedelta(0))
            # The grid of a new schedule goes on from the instant that the file names, if it names one.
            origin_at = (core and core.origin_at) or (now if moved_to is None else moved_to - every)
            start_at, jitter = said.instant("start_at"), said.duration("jitter", timedelta(0))
            return Every(every, origin_at, start_at, end_at, jitter)
        case "cron":
            expr, timezone = said.value("expr", str, ""), said.value("timezone", str, "") or "UTC"
            start_at, jitter = said.instant("start_at"), said.duration("jitter", timedelta(0))
            return CronSchedule(expr, timezone, start_at, end_at, jitter)
        case _:
            said.refuse("kind", "must be once, every or cron")
            return None


def _is_edited(fields: _Fields, core: Core | None) -> bool:
    """Whether the schedule is another than the one that was written."""
    schedule = fields.raw.get("schedule")
    return core is None or not isinstance(schedule, dict) or seal_of(schedule) != core.seal


def _planned(job: Job, fields: _Fields, core: Core | None, moved_to: datetime | None, around: Circumstances) -> Job:
    """The job with its cursor: where it stood if nobody touched it, else where the edit puts it."""
    if core is not None:
        # A `once` that nobody has looked at in time is shown with no next run at all.
        is_cleared = not fields.raw.get("next_run_at") and _next_of(core) and not isinstance(job.schedule, Once)
        if job.enabled == core.enabled and moved_to is None and not is_cleared and not _is_edited(fields, core):
            return _replace(job, next_slot_at=core.next_slot_at, next_fire_at=_next_of(core))
        job = _replace(job, version=job.version + 1, updated_at=around.now)
    if job.schedule is None or not job.enabled:
        return job
    if moved_to is not None:
        return _replace(job, next_slot_at=moved_to, next_fire_at=moved_to)
    if isinstance(job.schedule, Once) and core is None and fields.raw.get("last_run_at"):
        # It has run already; a file that another program wrote says so in no other way.
        return job
    slot_at = first_slot(job.schedule, around.now)
    if slot_at is None:
        return job
    return _replace(job, next_slot_at=slot_at, next_fire_at=fire_at(job.schedule, slot_at, around.jitter()))


def _stand_in(raw: dict[str, Any], read: Job, problem: str, now: datetime) -> Job:
    """A disabled job in place of one that cannot be read, so that it is seen and can be put right."""
    http = raw.get("http")
    url = http.get("url") if isinstance(http, dict) else None
    method = read.target.config["method"]
    said = {"method": method, "url": url if isinstance(url, str) else "", "headers": {}, "body": ""}
    return Job(
        id=read.id,
        surface=SURFACE,
        ref=read.ref[:REF_LENGTH],
        name=read.name[:NAME_LENGTH] or read.ref[:NAME_LENGTH],
        enabled=False,
        target=target_of(None, said),
        schedule=Once(now),
        overlap=OVERLAP,
        misfire=MISFIRE,
        extras={INVALID: problem},
        version=read.version,
        paused_at=now,
        created_at=read.created_at,
        updated_at=now,
    )


def broken_entry(raw: Any, job: Job, problem: str) -> dict[str, Any]:
    """An entry that cannot be read, as it stays in the file: as it was, but disabled, and it says why."""
    kept = dict(raw) if isinstance(raw, dict) else {"entry": raw}
    core = msgspec.to_builtins(core_of(job))
    return {**kept, "id": job.ref, "enabled": False, "last_status": "paused", "last_error": problem, "core": core}
