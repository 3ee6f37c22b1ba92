"""Markers such as `{{run_id}}` and `{{input.order.id}}` in URLs, header values and bodies, filled in once.

What is inserted is escaped for the place it goes to and never looked at again, so no value can smuggle in a
marker, a header, a path or a JSON key. What cannot be filled (an unknown name, a path the input lacks) stays.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from enum import StrEnum
from typing import Any, Protocol
from urllib.parse import quote, quote_plus

import msgspec

INPUT = "input"
NAMES = frozenset(
    {
        "run_id",
        "job_id",
        "job_name",
        "task_id",
        "scheduled_at",
        "scheduled_time",
        "triggered_at",
        "attempt",
        "fence",
        "trace_id",
        "callback_url",
        "callback_token",
        "idempotency_key",
    }
)
FILLED_BY_SERVICE = "<filled-by-service>"

_MARKER = r"\{\{\s*(?P<path>[A-Za-z_]\w*(?:\.[\w-]+)*)\s*\}\}"
_FILLED = rf'"(?P<key>job_id|run_id|scheduled_at|triggered_at)"(?P<colon>\s*:\s*)"{FILLED_BY_SERVICE}"'
_IN_TEXT = re.compile(_MARKER)
# Quotes and escapes are matched too: a marker means one thing inside a JSON string and another outside.
_IN_JSON = re.compile(rf'{_FILLED}|{_MARKER}|(?P<escape>\\.)|(?P<quote>")', re.DOTALL)
_COLON_NEXT = re.compile(r"\s*:")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)")


class Place(StrEnum):
    """What an inserted value has to be escaped for."""

    TEXT = "text"
    URL = "url"
    FORM = "form"
    JSON_STRING = "json string"
    JSON_VALUE = "json value"


class Values(Protocol):
    """Where the values of an attempt come from, by the names in `NAMES`."""

    def __getitem__(self, name: str, /) -> str: ...


class Slot(msgspec.Struct, frozen=True):
    """A marker: what it reads in the source, what it names, and where the value goes."""

    source: str
    path: tuple[str, ...]
    place: Place
    escape: Callable[[Any], str]


class Template(msgspec.Struct, frozen=True):
    """Text with at least one slot."""

    parts: tuple[str | Slot, ...]

    def fill(self, values: Values, given: Any) -> str:
        """The text with every slot filled from the attempt's values and the run's input."""
        return "".join(part if isinstance(part, str) else _filled(part, values, given) for part in self.parts)


def in_text(source: str, place: Place = Place.TEXT) -> Template | None:
    """A template for a header value, a URL or a body that is not JSON; None if there is nothing to fill."""
    if "{{" not in source:
        return None
    return _compiled(source, _text_slots(source, place))


def in_json(source: str) -> Template | None:
    """A template for JSON text; None if there is nothing to fill.

    Inside a string the inserted text is escaped; a string that is nothing but an input marker becomes that
    value, whatever its type; a marker outside of strings becomes a JSON value.
    """
    if "{{" not in source and FILLED_BY_SERVICE not in source:
        return None
    return _compiled(source, _json_slots(source))


def with_dummies(template: Template) -> str:
    """The text with harmless values in the slots, to find out whether it can become what it should be."""
    return "".join(
        part if isinstance(part, str) else "0" if part.place is Place.JSON_VALUE else "x" for part in template.parts
    )


def _compiled(source: str, slots: Iterator[tuple[int, int, Slot]]) -> Template | None:
    parts: list[str | Slot] = []
    done = 0
    for start, end, slot in slots:
        parts += [source[done:start], slot]
        done = end
    if not parts:
        return None
    return Template((*parts, source[done:]))


def _text_slots(source: str, place: Place) -> Iterator[tuple[int, int, Slot]]:
    for match in _IN_TEXT.finditer(source):
        if path := _known(match["path"]):
            yield match.start(), match.end(), _slot(match[0], path, place)


def _json_slots(source: str) -> Iterator[tuple[int, int, Slot]]:
    in_string = False
    is_object = source.lstrip().startswith("{")
    position = 0
    while match := _IN_JSON.search(source, position):
        position = match.end()
        if match["quote"]:
            in_string = not in_string
        elif match["key"]:
            if in_string:
                position, in_string = match.start() + 1, False
            elif is_object:
                start = match.end("colon")
                yield start, match.end(), _slot(source[start : match.end()], (match["key"],), Place.JSON_VALUE)
        elif match["path"] and (path := _known(match["path"])):
            start, end = match.span()
            if in_string and path[0] == INPUT and _is_whole_value(source, start, end):
                in_string, position = False, end + 1
                yield start - 1, end + 1, _slot(source[start - 1 : end + 1], path, Place.JSON_VALUE)
            else:
                place = Place.JSON_STRING if in_string else Place.JSON_VALUE
                yield start, end, _slot(match[0], path, place)


def _is_whole_value(source: str, start: int, end: int) -> bool:
    return source[start - 1] == '"' == source[end : end + 1] and not _COLON_NEXT.match(source, end + 1)


def _known(dotted: str) -> tuple[str, ...] | None:
    path = tuple(dotted.split("."))
    return path if path[0] == INPUT or dotted in NAMES else None


def _filled(slot: Slot, values: Values, given: Any) -> str:
    if slot.path[0] != INPUT:
        value: Any = values[slot.path[0]]
        # An id or a count written outside of quotes is meant as a number.
        if slot.place is Place.JSON_VALUE and not slot.source.startswith('"') and _NUMBER.fullmatch(value):
            return str(value)
        return slot.escape(value)
    value = _at(given, slot.path[1:])
    return slot.source if value is _MISSING else slot.escape(value)


_MISSING = object()


def _at(value: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        if isinstance(value, dict) and name in value:
            value = value[name]
        elif isinstance(value, list) and name.isdecimal() and int(name) < len(value):
            value = value[int(name)]
        else:
            return _MISSING
    return value


def _text(value: Any) -> str:
    return value if isinstance(value, str) else _json(value)


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


_ESCAPES: dict[Place, Callable[[Any], str]] = {
    Place.TEXT: _text,
    Place.URL: lambda value: quote(_text(value), safe=""),
    Place.FORM: lambda value: quote_plus(_text(value)),
    Place.JSON_STRING: lambda value: _json(_text(value))[1:-1],
    Place.JSON_VALUE: _json,
}


def _slot(source: str, path: tuple[str, ...], place: Place) -> Slot:
    return Slot(source, path, place, _ESCAPES[place])
