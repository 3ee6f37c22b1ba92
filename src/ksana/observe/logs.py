"""How log lines look: JSON for machines, short text for people; every instant with its zone, no secret in either."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Final, TextIO

import msgspec

from ksana.domain.errors import InvalidArgument
from ksana.domain.times import format_instant
from ksana.observe.redaction import Redactor

LEVELS: Final = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warn": logging.WARNING,
    "warning": logging.WARNING,
    "error": logging.ERROR,
    "critical": logging.CRITICAL,
}
FORMATS: Final = ("auto", "json", "text")

# People grep for the word of the document they know: each pair means the same, and a line has both or neither.
_SAME: Final = (("error", "err"), ("job_name", "name"), ("job_id", "task_id"))

_NOT_FIELDS: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "fields", "color_message"}


def setup_logging(
    level: str,
    format: str,
    stream: TextIO,
    is_tty: bool,
    *,
    no_color: bool = False,
    request_id: Callable[[], str] | None = None,
    secrets: Iterable[str] = (),
) -> logging.Handler:
    """Send all log lines of this process to `stream`; a second call replaces the first.

    `request_id` names the request being answered, `secrets` are values to mask wherever they turn up. What libraries
    say is shown from WARNING on, whatever the level: their details help only their authors.
    """
    threshold = level_of(level)
    shape = format.strip().lower()
    if shape not in FORMATS:
        raise InvalidArgument.of("logging.format", f"{format!r} is no log format; choose one of {', '.join(FORMATS)}")
    redact = Redactor(secrets)
    handler = _Handler(stream)
    if shape == "json" or (shape == "auto" and not is_tty):
        handler.setFormatter(JsonFormatter(redact, request_id))
    else:
        handler.setFormatter(TextFormatter(redact, request_id, color=is_tty and not no_color))
    root = logging.getLogger()
    for previous in [known for known in root.handlers if isinstance(known, _Handler)]:
        root.removeHandler(previous)
    root.addHandler(handler)
    root.setLevel(max(threshold, logging.WARNING))
    logging.getLogger("ksana").setLevel(threshold)
    return handler


def level_of(name: str) -> int:
    """The level of a name in any case."""
    level = LEVELS.get(name.strip().lower())
    if level is None:
        raise InvalidArgument.of("logging.level", f"{name!r} is no log level; choose one of {', '.join(LEVELS)}")
    return level


class _Handler(logging.StreamHandler[TextIO]):
    """The one handler of this process, told from those of others by its class."""


class _Formatter(logging.Formatter):
    def __init__(self, redact: Redactor, request_id: Callable[[], str] | None = None) -> None:
        super().__init__()
        self._redact = redact
        self._request_id = request_id

    def format(self, record: logging.LogRecord) -> str:
        return self._redact(self._line(record))

    def _line(self, record: logging.LogRecord) -> str:
        raise NotImplementedError

    def _fields(self, record: logging.LogRecord) -> dict[str, Any]:
        """What a record says beside its message: given as `extra={"fields": {...}}`, or one by one as `extra`."""
        fields = {key: value for key, value in vars(record).items() if key not in _NOT_FIELDS}
        given = getattr(record, "fields", None)
        if isinstance(given, Mapping):
            fields.update(given)
        if self._request_id is not None and (request_id := self._request_id()):
            fields.setdefault("request_id", request_id)
        if record.exc_info and record.exc_info[1] is not None:
            cause = record.exc_info[1]
            fields.setdefault("error", f"{type(cause).__name__}: {cause}")
        return fields

    def _traceback(self, record: logging.LogRecord) -> str:
        parts = [self.formatException(record.exc_info)] if record.exc_info and record.exc_info[1] else []
        if record.exc_text and not parts:
            parts.append(record.exc_text)
        if record.stack_info:
            parts.append(record.stack_info)
        return "\n".join(parts)


class JsonFormatter(_Formatter):
    """One JSON object per line, a traceback inside it."""

    def _line(self, record: logging.LogRecord) -> str:
        fields = self._fields(record)
        time = _time(record)
        line: dict[str, Any] = {
            "ts": time,
            "time": time,
            "level": record.levelname,
            "msg": record.getMessage(),
            "component": fields.pop("component", None) or _component(record.name),
        }
        for one, other in _SAME:
            if one in fields:
                fields.setdefault(other, fields[one])
            elif other in fields:
                fields[one] = fields[other]
        for key, value in fields.items():
            line.setdefault(key, value)
        if trace := self._traceback(record):
            line.setdefault("exception", trace)
        return _json(line)


def _json(line: dict[str, Any]) -> str:
    try:
        return _ENCODER.encode(line).decode()
    except (TypeError, ValueError, OverflowError):
        # A lone surrogate, a key that is no text, a number past 64 bits: rare, and no reason to lose the line.
        return json.dumps({str(key): value for key, value in line.items()}, default=repr, skipkeys=True)


_ENCODER: Final = msgspec.json.Encoder(enc_hook=str)


class TextFormatter(_Formatter):
    """`time LEVEL component message key=value …`, for eyes on a terminal."""

    def __init__(self, redact: Redactor, request_id: Callable[[], str] | None = None, *, color: bool = False) -> None:
        super().__init__(redact, request_id)
        self._color = color

    def _line(self, record: logging.LogRecord) -> str:
        fields = self._fields(record)
        component = str(fields.pop("component", None) or _component(record.name))
        head = f"{_time(record)} {self._level(record)} {_printable(component):<9} {_printable(record.getMessage())}"
        told = [f"{key}={_shown(value)}" for key, value in fields.items() if key not in _TEXT_OMITS]
        line = " ".join([head, *told])
        if trace := self._traceback(record):
            line += "\n" + _printable(trace, keep="\n\t")
        return line

    def _level(self, record: logging.LogRecord) -> str:
        name = f"{record.levelname:<7}"
        color = _COLORS.get(record.levelno, "") if self._color else ""
        return f"{color}{name}{_PLAIN}" if color else name


# A reader on a terminal needs each thing once.
_TEXT_OMITS: Final = frozenset({"err", "name", "task_id", "trace_id", "schedule_id"})

_PLAIN: Final = "\x1b[0m"
_COLORS: Final = {
    logging.DEBUG: "\x1b[2m",
    logging.INFO: "\x1b[32m",
    logging.WARNING: "\x1b[33m",
    logging.ERROR: "\x1b[31m",
    logging.CRITICAL: "\x1b[1;31m",
}


def _shown(value: object) -> str:
    text = format_instant(value) if isinstance(value, datetime) else str(value)
    return text if text and text.isprintable() and not set(text) & {" ", '"', "="} else json.dumps(text)


def _printable(text: str, keep: str = "") -> str:
    """Text that cannot pass for another line or move the cursor, whoever wrote it."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in keep else c.encode("unicode_escape").decode() for c in text)


def _time(record: logging.LogRecord) -> str:
    return format_instant(datetime.fromtimestamp(record.created, UTC))


def _component(logger: str) -> str:
    """The room a line comes from: `ksana.engine.runner` is `engine`, `uvicorn.error` is `uvicorn`."""
    first, _, rest = logger.partition(".")
    return rest.partition(".")[0] if first == "ksana" and rest else first
