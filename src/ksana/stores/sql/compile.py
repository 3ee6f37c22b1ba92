"""From a Statement with named values to what a driver takes: text with its own placeholders, and values in order."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from ksana.stores.sql.dialects import Dialect
from ksana.stores.sql.statements import Statement

_VALUE = re.compile(r"IN \(:(?P<list>\w+)\*\)|:(?P<one>\w+)")
_WORD = re.compile(r"\{(\w+)\}")


class Compiled(NamedTuple):
    """SQL cut at its values: `parts` has one piece more than `names`; lists are expanded when the values are known."""

    parts: tuple[str, ...]
    names: tuple[str, ...]
    lists: tuple[bool, ...]


def spell(text: str, dialect: Dialect) -> str:
    """Fill the braces with the dialect's words."""
    return _WORD.sub(lambda match: dialect.words[match.group(1)], text)


def compile_statement(statement: Statement, dialect: Dialect) -> Compiled:
    """Cut a statement at its values."""
    text = spell(statement.text, dialect)
    parts: list[str] = []
    names: list[str] = []
    lists: list[bool] = []
    end = 0
    for match in _VALUE.finditer(text):
        parts.append(text[end : match.start()])
        names.append(match["list"] or match["one"])
        lists.append(match["list"] is not None)
        end = match.end()
    parts.append(text[end:])
    return Compiled(tuple(parts), tuple(names), tuple(lists))


def expand(compiled: Compiled, values: dict[str, Any], placeholder: str) -> tuple[str, list[Any]]:
    """SQL with every list written out value by value, for drivers that know no arrays."""
    text: list[str] = [compiled.parts[0]]
    flat: list[Any] = []
    for name, is_list, part in zip(compiled.names, compiled.lists, compiled.parts[1:], strict=True):
        if is_list:
            items = values[name]
            # An empty list matches nothing; SQL has no empty IN.
            text.append(f"IN ({','.join([placeholder] * len(items)) or 'NULL'})")
            flat.extend(items)
        else:
            text.append(placeholder)
            flat.append(values[name])
        text.append(part)
    return "".join(text), flat
