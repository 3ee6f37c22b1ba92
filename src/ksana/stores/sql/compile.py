"""From a Statement with named values to what a driver takes: text with its own placeholders, and values in order."""

from __future__ import annotations

import re
from typing import NamedTuple

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
