"""The config of an HTTP job: what may be written, the defaults, and every field at fault."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Any

import msgspec

from ksana.domain.errors import InvalidArgument, Problem
from ksana.targets.http import templates
from ksana.targets.http.destinations import destination_of

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS")

_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_UNSENDABLE = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
# They say where the message ends; a wrong one would let a body be read as a second request.
_FRAMING = frozenset({"content-length", "transfer-encoding", "trailer", "upgrade"})
_FIELDS = ("method", "url", "headers", "body", "json", "mode")


class Mode(StrEnum):
    """Whether the answer ends the run, or a callback that comes later."""

    SYNC = "sync"
    ASYNC = "async"


class HttpConfig(msgspec.Struct, frozen=True):
    """A config that has been checked. `json` is the encoded value, so that a plan can be kept under it."""

    url: str
    method: str = "POST"
    headers: tuple[tuple[str, str], ...] = ()
    body: str | None = None
    json: bytes | None = None
    mode: Mode = Mode.SYNC

    def plain(self) -> dict[str, Any]:
        """As it is stored and shown."""
        shown: dict[str, Any] = {"method": self.method, "url": self.url, "headers": dict(self.headers)}
        if self.body is not None:
            shown["body"] = self.body
        if self.json is not None:
            shown["json"] = msgspec.json.decode(self.json)
        return {**shown, "mode": self.mode.value}


def checked(config: dict[str, Any]) -> HttpConfig:
    """The config as a value, or InvalidArgument with every problem it has."""
    problems = [
        Problem(f"target.{name}", f"is unknown; an http target has {', '.join(_FIELDS)}")
        for name in config
        if name not in _FIELDS
    ]
    method = _method(config.get("method"), problems)
    url = _url(config.get("url"), problems)
    headers = _headers(config.get("headers"), problems)
    body = _body(config.get("body"), problems)
    json = _json(config.get("json"), problems)
    if body is not None and json is not None:
        problems.append(Problem("target.json", "cannot go with target.body; leave one of them out"))
    mode = _mode(config.get("mode"), problems)
    if problems:
        raise InvalidArgument(problems)
    return HttpConfig(url, method, headers, body, json, mode)


def checked_headers(headers: Any, field: str, problems: list[Problem]) -> tuple[tuple[str, str], ...]:
    """Header names and values that can be sent, each problem under `field`.name."""
    if not isinstance(headers, dict):
        problems.append(Problem(field, "must be an object of names and values"))
        return ()
    seen: set[str] = set()
    for name, value in headers.items():
        if problem := _header_problem(name, value, seen):
            problems.append(Problem(f"{field}.{name}", problem))
    return tuple(headers.items())


def value_problem(value: str) -> str | None:
    """What keeps this text from being a header's value."""
    if found := _UNSENDABLE.search(value):
        return f"has the control character {found[0]!r}; a header is one line of text"
    return None


def _header_problem(name: Any, value: Any, seen: set[str]) -> str | None:
    if not isinstance(name, str) or not _TOKEN.fullmatch(name):
        return "is not a header name; use letters, digits and - only"
    if name.lower() in _FRAMING:
        return "is left to Ksana, which knows where the message ends; leave it out"
    if name.lower() in seen:
        return "is there twice, in different spelling; keep one"
    seen.add(name.lower())
    if not isinstance(value, str):
        return "must be text; put it in quotes"
    return value_problem(value) or _unencodable(value)


def _method(value: Any, problems: list[Problem]) -> str:
    if value is None:
        return "POST"
    if isinstance(value, str) and value.upper() in METHODS:
        return value.upper()
    problems.append(Problem("target.method", f"must be one of {', '.join(METHODS)}"))
    return ""


def _url(value: Any, problems: list[Problem]) -> str:
    if not isinstance(value, str) or not value:
        problems.append(Problem("target.url", "is required; write http://host/path or https://host/path"))
        return ""
    template = templates.in_text(value, templates.Place.URL)
    try:
        destination_of(value if template is None else templates.with_dummies(template))
    except ValueError as error:
        problems.append(Problem("target.url", str(error)))
    return value


def _headers(value: Any, problems: list[Problem]) -> tuple[tuple[str, str], ...]:
    return () if value is None else checked_headers(value, "target.headers", problems)


def _body(value: Any, problems: list[Problem]) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str):
        problems.append(Problem("target.body", "must be text; write a JSON value as target.json instead"))
        return None
    if problem := _unencodable(value):
        problems.append(Problem("target.body", problem))
    return value


def _json(value: Any, problems: list[Problem]) -> bytes | None:
    if value is None:
        return None
    try:
        return msgspec.json.encode(value)
    except (TypeError, ValueError, RecursionError) as error:
        problems.append(Problem("target.json", f"cannot be written as JSON: {error}"))
        return None


def _mode(value: Any, problems: list[Problem]) -> Mode:
    if value is None:
        return Mode.SYNC
    try:
        return Mode(value)
    except ValueError:
        problems.append(Problem("target.mode", "must be sync or async"))
        return Mode.SYNC


def _unencodable(value: str) -> str | None:
    return "has half of a surrogate pair, which is no text" if not _is_utf8(value) else None


def _is_utf8(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True
