"""The grammar of conditions: how a text becomes operands that are compared, negated and joined."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple, NoReturn

import msgspec

from ksana.domain.errors import InvalidArgument
from ksana.domain.markers import MARKER, Marker, marker_of

LENGTH = 4096
DEPTH = 32

_COMPARISONS = frozenset({"==", "!=", "<", "<=", ">", ">=", "in"})
_WORDS = frozenset({"and", "or", "not", "in"})
_CONSTANTS = {"true": True, "false": False, "null": None}
_SYMBOL = re.compile(r"==|!=|<=|>=|[<>()\[\],]")
_QUOTED = re.compile(r"'((?:[^'\\]|\\.)*)'", re.DOTALL)
_WORD = re.compile(r"""[^\s()<>=!"'\[\]{},&|]+""")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_OPERAND = "operand"


class Operand(msgspec.Struct, frozen=True):
    """A marker, or a plain value."""

    value: Any


class Not(msgspec.Struct, frozen=True):
    of: Node


class Joined(msgspec.Struct, frozen=True):
    """Parts joined by one word, `and` or `or`."""

    word: str
    parts: list[Node]


class Listed(msgspec.Struct, frozen=True):
    items: list[Node]


class Compared(msgspec.Struct, frozen=True):
    operator: str
    left: Node
    right: Node


Node = Operand | Not | Joined | Listed | Compared


class _Token(NamedTuple):
    """A word or symbol of the grammar, or an operand with its value."""

    at: int
    symbol: str
    value: Any = None


@lru_cache(maxsize=1024)
def parse_condition(condition: str) -> Node:
    """The condition as a tree, or InvalidArgument that says where it stops making sense."""
    if len(condition) > LENGTH:
        raise InvalidArgument.of("", f"a condition has at most {LENGTH} characters")
    return _Parser(condition).parse()


class _Parser:
    """Climbs from `or` over `and` and `not` down to comparisons of two operands."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._tokens = list(_tokens(source))
        self._at = 0
        self._depth = 0

    def parse(self) -> Node:
        node = self._either()
        if self._symbol():
            self._complain("was not expected here")
        return node

    def _either(self) -> Node:
        parts = [self._both()]
        while self._take("or"):
            parts.append(self._both())
        return _joined("or", parts)

    def _both(self) -> Node:
        parts = [self._negated()]
        while self._take("and"):
            parts.append(self._negated())
        return _joined("and", parts)

    def _negated(self) -> Node:
        if not self._take("not"):
            return self._compared()
        self._deeper()
        node = Not(self._negated())
        self._depth -= 1
        return node

    def _compared(self) -> Node:
        left = self._operand()
        operator = self._operator()
        if not operator:
            return left
        node = Compared(operator, left, self._operand())
        if self._operator():
            self._at -= 1
            self._complain("compares a third value; compare two at a time and join with and")
        return node

    def _operator(self) -> str:
        if self._symbol() == "not" and self._symbol(1) == "in":
            self._at += 2
            return "not in"
        if (symbol := self._symbol()) in _COMPARISONS:
            self._at += 1
            return symbol
        return ""

    def _operand(self) -> Node:
        if self._take("("):
            self._deeper()
            node = self._either()
            self._close(")")
            return node
        if self._take("["):
            self._deeper()
            items = [] if self._symbol() == "]" else [self._operand()]
            while self._take(","):
                items.append(self._operand())
            self._close("]")
            return Listed(items)
        if self._symbol() != _OPERAND:
            self._complain("was found where a value was expected")
        self._at += 1
        return Operand(self._tokens[self._at - 1].value)

    def _close(self, symbol: str) -> None:
        if not self._take(symbol):
            self._complain(f"was found where {symbol} was expected")
        self._depth -= 1

    def _symbol(self, ahead: int = 0) -> str:
        at = self._at + ahead
        return self._tokens[at].symbol if at < len(self._tokens) else ""

    def _take(self, symbol: str) -> bool:
        is_there = self._symbol() == symbol
        self._at += is_there
        return is_there

    def _deeper(self) -> None:
        self._depth += 1
        if self._depth > DEPTH:
            raise InvalidArgument.of("", f"a condition is nested at most {DEPTH} deep")

    def _complain(self, what: str) -> NoReturn:
        if self._at >= len(self._tokens):
            raise InvalidArgument.of("", f"{_shown(self._source)} ends too early: the end {what}")
        _complain(self._source, self._tokens[self._at].at, what)


def _joined(word: str, parts: list[Node]) -> Node:
    return parts[0] if len(parts) == 1 else Joined(word, parts)


def _tokens(source: str) -> Iterator[_Token]:
    at = 0
    while True:
        while at < len(source) and source[at].isspace():
            at += 1
        if at == len(source):
            return
        token, at = _token(source, at)
        yield token


def _token(source: str, at: int) -> tuple[_Token, int]:
    if source.startswith("{{", at):
        found = MARKER.match(source, at)
        if found is None:
            _complain(source, at, "opens a marker that is not closed by }}")
        return _Token(at, _OPERAND, _marker(source, at, found[1])), found.end()
    if found := _SYMBOL.match(source, at):
        return _Token(at, found[0]), found.end()
    if found := _QUOTED.match(source, at):
        return _Token(at, _OPERAND, _unquoted(found[1])), found.end()
    if source[at] in '"{':
        value, end = _literal(source, at)
        return _Token(at, _OPERAND, value), end
    if found := _WORD.match(source, at):
        word = found[0]
        if word in _WORDS:
            return _Token(at, word), found.end()
        if word in _CONSTANTS:
            return _Token(at, _OPERAND, _CONSTANTS[word]), found.end()
        if _NUMBER.fullmatch(word):
            return _Token(at, _OPERAND, json.loads(word)), found.end()
        return _Token(at, _OPERAND, _marker(source, at, word)), found.end()
    return _complain(source, at, "has no meaning here; there are == != < <= > >= in, and, or, not and parentheses")


def _marker(source: str, at: int, inside: str) -> Marker:
    marker = marker_of(inside)
    if marker is None:
        return _complain(
            source, at, 'is no value; write node.artifact, params.name, item, or a JSON value such as "text" in quotes'
        )
    return marker


def _literal(source: str, at: int) -> tuple[Any, int]:
    try:
        return _decode(source, at)
    except (ValueError, RecursionError):
        return _complain(source, at, "begins a JSON value that is not complete or not right")


def _unquoted(inside: str) -> str:
    as_json = re.sub(r'\\.|"', lambda found: {"\\'": "'", '"': '\\"'}.get(found[0], found[0]), inside)
    value, _ = _literal(f'"{as_json}"', 0)
    assert isinstance(value, str)
    return value


def _refused(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON")


_decode = json.JSONDecoder(parse_constant=_refused).raw_decode


def _complain(source: str, at: int, what: str) -> NoReturn:
    raise InvalidArgument.of("", f"{_shown(source[at:])} {what}")


def _shown(text: str) -> str:
    return repr(text if len(text) <= 40 else f"{text[:40]}…")
