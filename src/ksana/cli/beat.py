"""Reads the schedule of Celery beat: each entry becomes the words of a job, or the reason why it cannot."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Collection, Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import msgspec

from ksana.domain.durations import format_duration
from ksana.domain.errors import InvalidArgument, NotFound

# The ranges of crontab's fields, in the order of an expression.
_FIELDS: Final = (
    ("minute", 0, 59),
    ("hour", 0, 23),
    ("day_of_month", 1, 31),
    ("month_of_year", 1, 12),
    ("day_of_week", 0, 6),
)
_TAKEN: Final = ("queue", "priority", "expires")
_FEW: Final = 3


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """An entry of a beat schedule: a job in the words of a client, or `refused` with the reason. `notes` tell what of
    it is left behind."""

    name: str
    task: str
    words: dict[str, Any] = {}
    config: dict[str, Any] = {}
    notes: tuple[str, ...] = ()
    refused: str = ""


class _Refused(Exception):
    """It cannot be said as a job."""


def beat_entries(path: str, where: Mapping[str, str], cwd: Path) -> list[Entry]:
    """The entries of the app at `package.module:app`; `where` has its broker and backend."""
    app = _app(path, cwd)
    zone = str(app.timezone)
    return [_entry(str(name), entry, zone, where) for name, entry in dict(app.conf.beat_schedule).items()]


def _app(path: str, cwd: Path) -> Any:
    module, colon, name = path.partition(":")
    if not module or not colon or not name:
        raise InvalidArgument.of("app", f"{path!r} names no app; write package.module:app")
    # As `celery -A` does: the program is where the command is given.
    sys.path.insert(0, str(cwd))
    try:
        app = getattr(importlib.import_module(module), name)
        app.finalize()
        _ = app.conf.beat_schedule, app.timezone
    except (ImportError, AttributeError) as error:
        raise NotFound(f"there is no Celery app at {path}: {error}") from error
    finally:
        sys.path.remove(str(cwd))
    return app


def _entry(name: str, entry: Mapping[str, Any], zone: str, where: Mapping[str, str]) -> Entry:
    task = str(entry.get("task", ""))
    notes: list[str] = []
    config = {"task": task, "args": list(entry.get("args") or ()), "kwargs": dict(entry.get("kwargs") or {}), **where}
    try:
        words = _words(entry.get("schedule"), zone)
        config |= _options(dict(entry.get("options") or {}), notes)
        msgspec.json.encode(config)
    except _Refused as error:
        return Entry(name=name, task=task, refused=str(error))
    except (TypeError, ValueError) as error:
        return Entry(name=name, task=task, refused=f"its arguments are no JSON: {error}")
    return Entry(name=name, task=task, words=words, config=config, notes=tuple(notes))


def _words(schedule: Any, zone: str) -> dict[str, Any]:
    if isinstance(schedule, int | float) and not isinstance(schedule, bool):
        schedule = timedelta(seconds=schedule)
    if isinstance(schedule, timedelta):
        return _every(schedule)
    # By what it has, not by its class: a schedule of somebody's own may derive from either.
    if all(isinstance(getattr(schedule, field, None), Collection) for field, _, _ in _FIELDS):
        return {"cron": _expression(schedule), "tz": zone}
    kind = type(schedule).__name__
    if kind == "solar":
        raise _Refused("it follows the sun, which no cron expression does")
    run_every = getattr(schedule, "run_every", None)
    if kind == "schedule" and isinstance(run_every, timedelta):
        return _every(run_every)
    raise _Refused(f"its schedule is of the kind {kind}, which is neither crontab nor an interval")


def _every(span: timedelta) -> dict[str, Any]:
    if span <= timedelta(0):
        raise _Refused("its interval is not longer than nothing")
    return {"every": format_duration(span)}


def _expression(crontab: Any) -> str:
    fields = [_field(sorted(getattr(crontab, name)), first, last) for name, first, last in _FIELDS]
    if fields[2] != "*" and fields[4] != "*":
        # Celery wants both to hold, cron either of them.
        raise _Refused("it names a day of the month and a day of the week, and fires only where they meet")
    return " ".join(fields)


def _field(values: list[int], first: int, last: int) -> str:
    if len(values) == last - first + 1:
        return "*"
    step = values[1] - values[0] if len(values) >= _FEW else 0
    if step > 1 and values == list(range(first, last + 1, step)):
        return f"*/{step}"
    return ",".join(_runs(values))


def _runs(values: list[int]) -> Iterator[str]:
    """Values that follow each other as a range."""
    begin = end = values[0]
    for value in [*values[1:], None]:
        if value == end + 1:
            end = value
            continue
        yield str(begin) if begin == end else f"{begin}-{end}"
        if value is not None:
            begin = end = value


def _options(options: dict[str, Any], notes: list[str]) -> dict[str, Any]:
    taken = {name: options[name] for name in _TAKEN if options.get(name) is not None}
    expires = taken.get("expires")
    if isinstance(expires, int | float):
        taken["expires"] = format_duration(timedelta(seconds=expires))
    elif isinstance(expires, timedelta):
        taken["expires"] = format_duration(expires)
    elif expires is not None:
        del taken["expires"]
    left = [name for name, value in options.items() if value is not None and name not in taken]
    notes += [f"the option {name} is left behind" for name in sorted(left)]
    return taken
