"""Texts in the two languages people are spoken to in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

Language = Literal["en", "zh"]


class Words(msgspec.Struct, frozen=True):
    """One thing said in English and in Chinese."""

    en: str
    zh: str

    def in_language(self, language: Language) -> str:
        return self.zh if language == "zh" else self.en


def listed_en(items: Sequence[str], last: str = "and") -> str:
    """`a, b and c`."""
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} {last} {items[-1]}"


def listed_zh(items: Sequence[str]) -> str:
    """`a、b 和 c`; a space only where text in Latin letters or digits wants one."""
    if len(items) == 1:
        return items[0]
    before, after = "、".join(items[:-1]), items[-1]
    return f"{before}{_gap(before[-1])}和{_gap(after[0])}{after}"


def ordinal(number: int) -> str:
    """`1st`, `2nd`, `11th`."""
    if number % 100 in (11, 12, 13):
        return f"{number}th"
    return f"{number}{ {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th') }"


def _gap(letter: str) -> str:
    return " " if letter.isascii() else ""
