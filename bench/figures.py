"""Figures and the table they end in: every figure is a median with its range, beside what it was measured against."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from typing import NamedTuple


class Unit(NamedTuple):
    """How a number is shown."""

    show: Callable[[float], str]


def _rate(value: float) -> str:
    return f"{value / 1000:.1f}k/s" if value >= 1000 else f"{value:.0f}/s"


RATE = Unit(_rate)
MILLIS = Unit(lambda value: f"{value:.1f} ms")
SECONDS = Unit(lambda value: f"{value:.2f} s")
SHARE = Unit(lambda value: f"{value:.1%}")
MEGABYTES = Unit(lambda value: f"{value:.0f} MB")


class Figure(NamedTuple):
    """What came of measuring the same thing several times."""

    values: tuple[float, ...]
    unit: Unit

    @property
    def median(self) -> float:
        return statistics.median(self.values)

    def __str__(self) -> str:
        show = self.unit.show
        if len(self.values) == 1:
            return show(self.median)
        return f"{show(self.median)} ({show(min(self.values))}-{show(max(self.values))})"


class Missing(NamedTuple):
    """Why there is no figure."""

    reason: str

    def __str__(self) -> str:
        return f"none: {self.reason}"


Measured = Figure | Missing


class Bound(NamedTuple):
    """What a ratio has to reach, or must not pass."""

    limit: float
    is_floor: bool

    def __str__(self) -> str:
        return f"{'≥' if self.is_floor else '≤'} {self.limit:g}"

    def holds(self, value: float) -> bool:
        return value >= self.limit if self.is_floor else value <= self.limit


def at_least(limit: float) -> Bound:
    return Bound(limit, True)


def at_most(limit: float) -> Bound:
    return Bound(limit, False)


class Row(NamedTuple):
    """One line: our figure, what it is held against, and what was wanted. With no reference, the figure itself is held
    against the bound; with no bound, the line is for information."""

    part: str
    ours: Measured
    reference: str = ""
    theirs: Measured | None = None
    wanted: Bound | None = None

    @property
    def ratio(self) -> float | None:
        if isinstance(self.ours, Figure) and isinstance(self.theirs, Figure):
            return self.ours.median / self.theirs.median
        return None

    @property
    def is_met(self) -> bool | None:
        """None when there is nothing to tell."""
        if self.wanted is None:
            return None
        if self.reference:
            return None if self.ratio is None else self.wanted.holds(self.ratio)
        return self.wanted.holds(self.ours.median) if isinstance(self.ours, Figure) else None

    def cells(self) -> tuple[str, ...]:
        ratio = "" if self.ratio is None else f"{self.ratio:.3g}"
        wanted = "" if self.wanted is None else str(self.wanted)
        verdict = {None: "-", True: "yes", False: "NO"}[self.is_met]
        theirs = "" if self.theirs is None else str(self.theirs)
        return self.part, str(self.ours), f"{self.reference} {theirs}".strip(), ratio, wanted, verdict


_HEADS = ("part", "ours", "reference", "ratio", "wanted", "ok?")


def table(rows: Sequence[Row]) -> str:
    """Rows as a table that reads well as plain text and as Markdown."""
    lines = [_HEADS, *(row.cells() for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(_HEADS))]
    shown = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) + " |" for line in lines
    ]
    rule = "|" + "|".join("-" * (width + 2) for width in widths) + "|"
    return "\n".join([shown[0], rule, *shown[1:]])
