"""Strict JSON in: what two parsers could read differently, or a store could not keep, is refused.

No NaN, no duplicate keys, UTF-8 without a byte order mark, nothing after the value, at most 64 levels,
integers of 64 bits, no lone surrogates, no U+0000. Whatever the bytes, the errors are InvalidJson or
InvalidArgument."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, Final, Generic, TypeVar

import msgspec

from ksana.api.kit.conversion import MAX_PROBLEMS, convert
from ksana.api.kit.errors import InvalidJson
from ksana.api.kit.wire import encode
from ksana.domain.errors import InvalidArgument, KsanaError, Problem

T = TypeVar("T")
Adapt = Callable[[Any], Any]
"""Rewrites a decoded tree before it is converted: how a surface takes older spellings of its keys."""

MAX_DEPTH: Final = 64
_INT_MIN, _INT_MAX = -(2**63), 2**63 - 1
_SEARCHED_UP_TO: Final = 256 * 1024
_NUL: Final = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")
_STRING: Final = re.compile(rb'"(?:[^"\\]++|\\.)*+"', re.DOTALL)
_FOLD: Final = bytes.maketrans(b"{}", b"[]")
_NO_BRACKET: Final = bytes(set(range(256)) - set(b"[]{}"))
_SAME_DIGITS: Final = bytes.maketrans(b"123456789", b"000000000")
# Every number with fewer digits fits in 64 bits.
_MANY_DIGITS: Final = b"0" * 19
_TOO_DEEP: Final = f"nested deeper than {MAX_DEPTH} levels"


class Input(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of request structs that refuse fields they do not know."""


class JsonReader(Generic[T]):
    """Reads bytes into one type. Built once per route, so that a request costs two C passes over its body."""

    def __init__(self, to: Any, adapt: Adapt | None = None) -> None:
        self._to = to
        self._adapt = adapt
        self._typed: msgspec.json.Decoder[T] = msgspec.json.Decoder(to)

    def read(self, body: bytes) -> T:
        """The value of a body."""
        if self._adapt is not None:
            tree = read_tree(body)
            return convert(self._adapt(tree), self._to)  # type: ignore[no-any-return]
        try:
            value = self._typed.decode(body)
        except (ValueError, RecursionError, InvalidArgument):
            tree = read_tree(body)
            # The typed decoder and convert agree but for corners such as a number too large for a float;
            # where only the first refuses, its word stands.
            convert(tree, self._to)
            raise InvalidJson("the body cannot be read; check its numbers") from None
        _require_portable(body)
        return value


def read_tree(body: bytes) -> Any:
    """A body as plain dicts, lists, strings and numbers, with every rule of this module but no type."""
    tree = _grammar(body)
    _require_portable(body)
    return tree


def _grammar(body: bytes) -> Any:
    try:
        return msgspec.json.decode(body)
    except UnicodeDecodeError as error:
        raise InvalidJson(f"the body is not UTF-8 (byte {error.start})") from None
    except RecursionError:
        raise InvalidJson(_TOO_DEEP) from None
    except msgspec.DecodeError as error:
        raise InvalidJson(_reason(body, str(error))) from None


def _reason(body: bytes, text: str) -> str:
    if not body.strip():
        return "the body is empty; send a JSON value"
    if body.startswith((b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")):
        return "the body starts with a byte order mark; send plain UTF-8"
    return f"{text[:1].lower()}{text[1:]}".replace("JSON is malformed", "the body is not JSON")


class _Unfit(Exception):
    """Something in the body needs the slow look that can say where it is."""


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                raise InvalidJson(f"the key {name[:60]!r} appears twice in one object; send it once")
            seen.add(name)
    return members


def _integer(text: str) -> int:
    if len(text) > 18 and not (len(text) <= 20 and _INT_MIN <= int(text) <= _INT_MAX):
        raise _Unfit
    return int(text)


# msgspec keeps the last of two equal keys and says nothing. The standard decoder with a hook per object finds them
# where they are, whatever is escaped.
_SECOND_LOOK: Final = json.JSONDecoder(object_pairs_hook=_object, parse_int=_integer)


def _require_portable(body: bytes) -> None:
    """Refuse a well-formed body that stores or other parsers would not keep as it is."""
    if not _is_plain(body):
        _look_twice(body)


def _is_plain(body: bytes) -> bool:
    """Whether a look at the bytes as a whole proves that there is nothing to refuse, as with nearly every body."""
    # A key that appears twice is read once and with it its colon is gone, where no escape can stand for another.
    if b"\\u" in body or _MANY_DIGITS in body.translate(_SAME_DIGITS):
        return False
    try:
        tree = msgspec.json.decode(body)
    except (ValueError, RecursionError):
        return False
    return body.count(b":") == encode(tree).count(b":") and _is_shallow_tree(tree)


def _is_shallow_tree(tree: Any) -> bool:
    """Whether a decoded value keeps to the levels allowed: each round goes one level down."""
    level = [tree] if isinstance(tree, dict | list) else []
    for _ in range(MAX_DEPTH):
        if not level:
            return True
        level = [
            member
            for holder in level
            for member in (holder.values() if type(holder) is dict else holder)
            if type(member) is dict or type(member) is list
        ]
    return not level


def _look_twice(body: bytes) -> None:
    try:
        _SECOND_LOOK.decode(body.decode())
    except UnicodeDecodeError as error:
        raise InvalidJson(f"the body is not UTF-8 (byte {error.start})") from None
    except RecursionError:
        raise InvalidJson(_TOO_DEEP) from None
    except json.JSONDecodeError as error:
        raise InvalidJson(f"the body is not JSON: {error.msg.lower()} (byte {error.pos})") from None
    except _Unfit:
        raise _misfit(body, "an integer does not fit in 64 bits; send it as a string") from None
    if b"\\u0000" in body and _NUL.search(body):
        raise _misfit(body, "a string contains U+0000, which cannot be stored; remove it")
    # Where there are fewer brackets than levels allowed there is nothing to measure.
    if body.count(b"{") + body.count(b"[") > MAX_DEPTH and not _is_shallow(body):
        raise InvalidJson(_TOO_DEEP)


def _is_shallow(body: bytes) -> bool:
    """Whether a well-formed body keeps to the levels allowed: each round takes the innermost level away."""
    brackets = _STRING.sub(b"", body).translate(_FOLD, _NO_BRACKET)
    for _ in range(MAX_DEPTH):
        brackets = brackets.replace(b"[]", b"")
        if not brackets:
            return True
    return False


def _misfit(body: bytes, message: str) -> KsanaError:
    # Finding the place takes a walk in Python, which on a body of megabytes would hold up everybody else.
    if len(body) > _SEARCHED_UP_TO:
        return InvalidJson(message)
    return InvalidArgument(islice(_unfit(_grammar(body), "", 1), MAX_PROBLEMS))


def _unfit(value: Any, path: str, depth: int) -> Iterator[Problem]:
    if isinstance(value, str):
        if "\0" in value:
            yield Problem(path, "contains U+0000, which cannot be stored; remove it")
    elif isinstance(value, int):
        if not _INT_MIN <= value <= _INT_MAX:
            yield Problem(path, "does not fit in 64 bits; send it as a string")
    elif isinstance(value, dict | list):
        if depth > MAX_DEPTH:
            raise InvalidJson(_TOO_DEEP)
        if isinstance(value, list):
            for index, item in enumerate(value):
                yield from _unfit(item, f"{path}[{index}]", depth + 1)
            return
        for name, item in value.items():
            if "\0" in name:
                yield Problem(path, "has a key with U+0000, which cannot be stored; remove it")
            yield from _unfit(item, f"{path}.{name}" if path else name, depth + 1)
