"""The query string as a struct: text becomes numbers and booleans; a misspelt name is refused."""

from __future__ import annotations

import math
import types
import typing
from collections.abc import Iterator
from typing import Any, Final
from urllib.parse import parse_qsl

import msgspec

from ksana.api.kit.conversion import convert
from ksana.domain.errors import InvalidArgument

_MAX_PARAMETERS: Final = 100


class NoQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The query of a route that takes none."""


class QueryReader:
    """Reads query strings into one struct."""

    def __init__(self, to: type[msgspec.Struct]) -> None:
        self._to = to
        fields = msgspec.structs.fields(to)
        self._kinds = {field.encode_name: frozenset(_kinds(field.type)) for field in fields}
        # Frozen and without required fields: one instance serves every request that says nothing.
        self._blank = to() if not any(field.required for field in fields) else None

    def read(self, query_string: bytes) -> Any:
        """The struct of a query string."""
        if not query_string and self._blank is not None:
            return self._blank
        given: dict[str, Any] = {}
        for name, value in _pairs(query_string):
            if "\0" in value or "\0" in name:
                raise InvalidArgument.of(name.replace("\0", ""), "contains U+0000; remove it")
            kinds = self._kinds.get(name, frozenset())
            if list in kinds:
                given.setdefault(name, []).append(_plainly(value, kinds))
            elif name in given:
                raise InvalidArgument.of(name, "is given twice; send it once")
            else:
                given[name] = _plainly(value, kinds)
        query = convert(given, self._to, strict=False)
        _require_plain_numbers(query)
        return query


def _pairs(query_string: bytes) -> list[tuple[str, str]]:
    try:
        text = query_string.decode("ascii")
        return parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=_MAX_PARAMETERS)
    except UnicodeError:
        raise InvalidArgument.of("", "the query string is not percent-encoded UTF-8") from None
    except ValueError:
        raise InvalidArgument.of("", f"the query has more than {_MAX_PARAMETERS} parameters") from None


def _require_plain_numbers(query: msgspec.Struct) -> None:
    for name in query.__struct_fields__:
        value = getattr(query, name)
        if isinstance(value, float) and not math.isfinite(value):
            raise InvalidArgument.of(name, "must be a finite number")
        if isinstance(value, int) and not -(2**63) <= value < 2**63:
            raise InvalidArgument.of(name, "does not fit in 64 bits")


def _plainly(value: str, kinds: frozenset[Any]) -> str:
    # msgspec would also take `null` for an absent value and `1` for true, which the description does not
    # promise; an empty text in their place is refused with the message of the field's own type.
    if str in kinds:
        return value
    if value.lower() == "null" or (bool in kinds and value not in ("true", "false")):
        return ""
    return value


def _kinds(to: Any) -> Iterator[Any]:
    """The plain types a field's type is made of; `list` stands for everything that can be repeated."""
    origin = typing.get_origin(to)
    if origin is typing.Annotated:
        yield from _kinds(typing.get_args(to)[0])
    elif origin in (typing.Union, types.UnionType):
        for option in typing.get_args(to):
            yield from _kinds(option)
    elif origin in (list, set, frozenset):
        yield list
        yield from _kinds(typing.get_args(to)[0])
    else:
        yield to
