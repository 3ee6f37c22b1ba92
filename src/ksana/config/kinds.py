"""What a setting may hold: each kind turns text, or a list or map of text, into a value or refuses it.

Values arrive as written. YAML's typing takes no part, so `off` and `1:30` mean the same in file and variable.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from enum import StrEnum
from ipaddress import ip_address, ip_network
from typing import NamedTuple, TypeVar
from urllib.parse import urlsplit

from ksana.domain.durations import format_duration, parse_duration
from ksana.domain.errors import InvalidArgument
from ksana.domain.keys import parse_key
from ksana.domain.times import zone

Raw = str | Sequence[str] | Mapping[str, str]

_HOST_NAME = re.compile(r"(?!-)[A-Za-z0-9_-]{1,63}(\.[A-Za-z0-9_-]{1,63})*\.?")
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_FRAMING_HEADERS = frozenset({"host", "content-length", "transfer-encoding", "connection"})
_DAYS = re.compile(r"(\d{1,6})d(.*)")
_SIZE = re.compile(r"(\d{1,15})\s*(|b|kib|mib|gib|kb|mb|gb)", re.IGNORECASE)
_SIZE_UNITS = {"": 1, "b": 1, "kib": 2**10, "mib": 2**20, "gib": 2**30, "kb": 10**3, "mb": 10**6, "gb": 10**9}
_BOOLEANS = {
    "true": True,
    "yes": True,
    "on": True,
    "1": True,
    "false": False,
    "no": False,
    "off": False,
    "0": False,
}
_ALERT_URL = re.compile(r"[a-z][a-z0-9+.-]*://[^\s/][^\s]*", re.IGNORECASE)
_LONGEST = timedelta(days=36500)
_SHORTEST_SECRET = 16

_E = TypeVar("_E", bound=StrEnum)


class RefusedError(ValueError):
    """The value is not one of the kind; the text says why when the list of what is allowed is not enough."""


class Kind(NamedTuple):
    allowed: str
    parse: Callable[[Raw], object]


def _text(raw: Raw) -> str:
    if isinstance(raw, str):
        return raw.strip()
    raise RefusedError("a single value is needed here, not a list or a map")


def _list(raw: Raw) -> list[str]:
    if isinstance(raw, Mapping):
        raise RefusedError("a list is needed here, not a map")
    entries = raw.split(",") if isinstance(raw, str) else raw
    return [entry.strip() for entry in entries if entry.strip()]


def whole(low: int, high: int) -> Kind:
    def parse(raw: Raw) -> int:
        text = _text(raw)
        # int() alone would also take "1_000", "+7" and digits of other scripts.
        if not re.fullmatch(r"-?[0-9]{1,18}", text) or not low <= int(text) <= high:
            raise RefusedError
        return int(text)

    return Kind(f"a whole number from {low} to {high}", parse)


def duration(low: timedelta, high: timedelta = _LONGEST) -> Kind:
    def parse(raw: Raw) -> timedelta:
        span = _span(_text(raw))
        if not low <= span <= high:
            raise RefusedError
        return span

    limits = f"{span_text(low)} to {span_text(high)}" if high < _LONGEST else f"at least {span_text(low)}"
    return Kind(f"a duration such as 500ms, 5s, 1h30m or 30d, or whole seconds; {limits}", parse)


def _span(text: str) -> timedelta:
    if re.fullmatch(r"[0-9]{1,10}", text):
        return timedelta(seconds=int(text))
    days = _DAYS.fullmatch(text)
    try:
        if days is None:
            return parse_duration(text, "")
        rest = parse_duration(days[2], "") if days[2] else timedelta()
    except InvalidArgument as error:
        raise RefusedError from error
    return timedelta(days=int(days[1])) + rest


def span_text(span: timedelta) -> str:
    """A duration as one would write it in a configuration: `1h30m`, `500ms`, `30d`."""
    days, rest = divmod(span, timedelta(days=1))
    return f"{days}d" if days and not rest else format_duration(span)


def size(low: int, high: int) -> Kind:
    def parse(raw: Raw) -> int:
        match = _SIZE.fullmatch(_text(raw))
        if match is None:
            raise RefusedError
        number = int(match[1]) * _SIZE_UNITS[match[2].lower()]
        if not low <= number <= high:
            raise RefusedError
        return number

    return Kind(f"a size in bytes, or with KiB, MiB, GiB; {low} to {high} bytes", parse)


def choice(options: type[_E], **synonyms: str) -> Kind:
    def parse(raw: Raw) -> _E:
        text = _text(raw).lower()
        try:
            return options(synonyms.get(text, text))
        except ValueError as error:
            raise RefusedError from error

    return Kind("one of " + ", ".join(options), parse)


def _boolean(raw: Raw) -> bool:
    try:
        return _BOOLEANS[_text(raw).lower()]
    except KeyError as error:
        raise RefusedError from error


def _host(raw: Raw) -> str:
    text = _text(raw)
    bare = text[1:-1] if text.startswith("[") and text.endswith("]") else text
    if _is_address(bare) or _HOST_NAME.fullmatch(bare):
        return bare
    if re.fullmatch(r"[^:]*:[0-9]+", text):
        raise RefusedError("the port has a setting of its own, server.port")
    raise RefusedError("for every interface write 0.0.0.0 or ::" if text in ("*", "") else "")


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


def _host_headers(raw: Raw) -> tuple[str, ...]:
    names = [name.lower() for name in _list(raw)]
    for name in names:
        bare = name[1:-1] if name.startswith("[") and name.endswith("]") else name.removeprefix("*.")
        if name != "*" and not (_is_address(bare) or _HOST_NAME.fullmatch(bare)):
            raise RefusedError(f"{name!r} is not a host name")
    return tuple(names)


def _networks(raw: Raw) -> tuple[str, ...]:
    return tuple(_network(entry) for entry in _list(raw))


def _network(entry: str) -> str:
    try:
        return str(ip_network(entry, strict=False))
    except ValueError:
        # A name made of digits and dots or slashes is an address with a slip in it, not a host.
        if _HOST_NAME.fullmatch(entry.removeprefix("*.")) and not re.fullmatch(r"[0-9.]+", entry):
            return entry.lower()
        raise RefusedError(f"{entry!r} is neither a network, an address nor a host name") from None


def _base_path(raw: Raw) -> str:
    path = _text(raw).rstrip("/")
    if not re.fullmatch(r"(/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)*", path):
        raise RefusedError
    return path


def _http_url(raw: Raw) -> str:
    text = _text(raw).rstrip("/")
    try:
        parts = urlsplit(text)
        port_is_fine = parts.port is None or parts.port > 0
    except ValueError as error:
        raise RefusedError(str(error)) from error
    if parts.scheme not in ("http", "https") or not parts.hostname or not port_is_fine or re.search(r"\s", text):
        raise RefusedError
    if parts.query or parts.fragment:
        raise RefusedError("it is extended with a path, so it cannot carry a query or a fragment")
    return text


def _headers(raw: Raw) -> dict[str, str]:
    headers = raw if isinstance(raw, Mapping) else _json_map(raw)
    for name, value in headers.items():
        if not _HEADER_NAME.fullmatch(name):
            raise RefusedError(f"{name!r} is not a header name")
        if name.lower() in _FRAMING_HEADERS:
            raise RefusedError(f"{name} is set for each request and cannot be given here")
        if re.search(r"[\x00-\x08\x0a-\x1f\x7f]", value):
            raise RefusedError(f"the value of {name} holds a control character")
    return dict(headers)


def _json_map(raw: Raw) -> dict[str, str]:
    try:
        found = json.loads(_text(raw))
    except ValueError as error:
        raise RefusedError from error
    if not isinstance(found, dict) or not all(isinstance(value, str) for value in found.values()):
        raise RefusedError
    return found


def _zone(raw: Raw) -> str:
    text = _text(raw)
    try:
        zone(text)
    except InvalidArgument as error:
        raise RefusedError(error.problems[0].message) from error
    return text


def _keys(raw: Raw) -> tuple[str, ...]:
    keys = tuple(_list(raw))
    for position, key in enumerate(keys, 1):
        if parse_key(key) is None:
            raise RefusedError(f"key {position} is not an API key; make one with `ksana key create --offline`")
    return keys


def _alert_urls(raw: Raw) -> tuple[str, ...]:
    urls = tuple(_list(raw))
    for position, url in enumerate(urls, 1):
        # The address itself may be a secret, so it is not repeated.
        if not _ALERT_URL.fullmatch(url):
            raise RefusedError(f"address {position} is none; write https://host/path or another scheme://…")
    return urls


def _secret(raw: Raw) -> str:
    text = _text(raw)
    if len(text) < _SHORTEST_SECRET:
        raise RefusedError(f"must have at least {_SHORTEST_SECRET} characters")
    return text


def _modules(raw: Raw) -> tuple[str, ...]:
    names = tuple(_list(raw))
    for name in names:
        if not all(part.isidentifier() for part in name.split(".")):
            raise RefusedError(f"{name!r} is not the name of a module")
    return names


BOOLEAN = Kind("true or false (yes/no, on/off and 1/0 are read too)", _boolean)
HOST = Kind("an address or a host name to listen on", _host)
HOST_HEADERS = Kind("host names, *.example.com for a whole domain, or * for any", _host_headers)
NETWORKS = Kind("networks (10.0.0.0/8), addresses, host names or *.example.com", _networks)
BASE_PATH = Kind("empty, or a path that starts with a slash, such as /ksana", _base_path)
HTTP_URL = Kind("an http:// or https:// address", _http_url)
HEADERS = Kind('a map of header names to text; in a variable a JSON object such as {"X-Team": "ops"}', _headers)
ZONE = Kind("UTC, an IANA zone such as Asia/Shanghai, or an offset such as +08:00", _zone)
KEYS = Kind("API keys (ksk_…), as made by `ksana key create --offline`", _keys)
SECRET = Kind(f"at least {_SHORTEST_SECRET} characters", _secret)
MODULES = Kind("names of modules, such as reports.daily", _modules)
ALERT_URLS = Kind("https:// addresses, or addresses as apprise has them (mailto://…, tgram://…)", _alert_urls)
PATH = Kind("a directory", _text)
STORE = Kind(
    "sqlite:PATH, json:DIR, postgresql://…, mysql://…, redis://… or a Go DSN (user:pass@tcp(host:3306)/db)",
    _text,
)
