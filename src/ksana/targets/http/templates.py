"""Markers such as `{{run_id}}` and `{{input.order.id}}` in URLs, header values and bodies, filled in once.

What is inserted is escaped for the place it goes to and never looked at again, so no value can smuggle in a
marker, a header, a path or a JSON key. What cannot be filled (an unknown name, a path the input lacks) stays.

The markers of a chain (`{{fetch.artifact.id}}`, `{{params.mode}}`, `{{item}}`) are filled in at the same time and in
the same way, but only in its steps, where one that stands for nothing is an error.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from enum import StrEnum
from typing import Any, Protocol
from urllib.parse import quote, quote_plus

import msgspec

from ksana.domain.markers import Marker, Scope, Unresolved, marker_of

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

_PATH = re.compile(r"[A-Za-z_]\w*(?:\.[\w-]+)*")
_FILLED = rf'"(?P<key>job_id|run_id|scheduled_at|triggered_at)"(?P<colon>\s*:\s*)"{FILLED_BY_SERVICE}"'
_IN_TEXT = re.compile(r"\{\{(?!\{)(?P<inside>(?:(?!\{\{|\}\}).)+)\}\}", re.DOTALL)
# Quotes and escapes are matched too: a marker means one thing inside a JSON string and another outside.
_MARKER = r"\{\{(?!\{)(?P<inside>(?:(?!\{\{|\}\})(?:\\.|[^\"\\]))+)\}\}"
_IN_JSON = re.compile(rf'{_FILLED}|{_MARKER}|(?P<escape>\\.)|(?P<quote>")', re.DOTALL)
_COLON_NEXT = re.compile(r"\s*:")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)")


class Place(StrEnum):
    """What an inserted value has to be escaped for."""

    TEXT = "text"
    URL = "url"
    BASE = "beginning of a url"
    FORM = "form"
    JSON_STRING = "json string"
    JSON_VALUE = "json value"


class Values(Protocol):
    """Where the values of an attempt come from, by the names in `NAMES`."""

    def __getitem__(self, name: str, /) -> str: ...

    @property
    def scope(self) -> Scope | None:
        """What the markers of a chain stand for; None if this is no step of one."""
        ...


class Slot(msgspec.Struct, frozen=True):
    """A marker: what it reads in the source, what it names (in a chain maybe something else), and where the value
    goes."""

    source: str
    path: tuple[str, ...]
    place: Place
    escape: Callable[[Any], str]
    marker: Marker | None = None


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
    return "".join(part if isinstance(part, str) else _DUMMIES.get(part.place, "x") for part in template.parts)


_DUMMIES = {Place.JSON_VALUE: "0", Place.BASE: "http://x"}


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
        if known := _known(match["inside"]):
            # Whoever begins a URL with a value of the chain means it to say where the request goes.
            is_base = place is Place.URL and match.start() == 0 and not known[0]
            yield match.start(), match.end(), _slot(match[0], known, Place.BASE if is_base else place)


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
                known = (match["key"],), None
                yield start, match.end(), _slot(source[start : match.end()], known, Place.JSON_VALUE)
        elif match["inside"] and (found := _known(_unescaped(match["inside"]))):
            start, end = match.span()
            if in_string and (found[1] or found[0][0] == INPUT) and _is_whole_value(source, start, end):
                in_string, position = False, end + 1
                yield start - 1, end + 1, _slot(source[start - 1 : end + 1], found, Place.JSON_VALUE)
            else:
                place = Place.JSON_STRING if in_string else Place.JSON_VALUE
                yield start, end, _slot(match[0], found, place)


def _is_whole_value(source: str, start: int, end: int) -> bool:
    return source[start - 1] == '"' == source[end : end + 1] and not _COLON_NEXT.match(source, end + 1)


_Known = tuple[tuple[str, ...], Marker | None]


def _known(inside: str) -> _Known | None:
    """What a marker names here, and what in a chain; None if it is neither."""
    dotted = inside.strip()
    path = tuple(dotted.split(".")) if _PATH.fullmatch(dotted) else ("",)
    is_ours = path[0] == INPUT or dotted in NAMES
    marker = marker_of(inside)
    return (path if is_ours else (), marker) if is_ours or marker else None


def _unescaped(inside: str) -> str:
    """What a part of a JSON string says."""
    if "\\" not in inside:
        return inside
    try:
        return str(msgspec.json.decode(f'"{inside}"'))
    except msgspec.DecodeError:
        return ""


def _filled(slot: Slot, values: Values, given: Any) -> str:
    marker = slot.marker
    if marker and (scope := values.scope) and (not slot.path or marker.step in scope.artifacts):
        try:
            return slot.escape(marker.value(scope))
        except Unresolved as error:
            raise ValueError(str(error)) from None
    if not slot.path:
        return slot.source
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
    Place.BASE: _text,
    Place.URL: lambda value: quote(_text(value), safe=""),
    Place.FORM: lambda value: quote_plus(_text(value)),
    Place.JSON_STRING: lambda value: _json(_text(value))[1:-1],
    Place.JSON_VALUE: _json,
}


def _slot(source: str, known: _Known, place: Place) -> Slot:
    path, marker = known
    return Slot(source, path, place, _ESCAPES[place], marker)
