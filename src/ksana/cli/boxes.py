"""Small chains drawn as boxes with lines between them, where the lines cannot be misread.

Lines that meet mean that all on their left are needed by all on their right. What needs more than that, such as lines
that cross, is left to the list by layers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from ksana.cli.drawing import Box, label
from ksana.domain.layout import GAP_HEIGHT, NODE_HEIGHT, Layout, Needs, lay_out

_MOST: Final = 40
_GAP: Final = 5
_TRACK: Final = 2
# A row is a box of three lines and an empty one; layers are moved by halves of that.
_LINES: Final = 4
_LEFT, _RIGHT, _UP, _DOWN = 1, 2, 4, 8
_SIGNS: Final = {
    _LEFT: "─",
    _RIGHT: "─",
    _LEFT | _RIGHT: "─",
    _UP: "│",
    _DOWN: "│",
    _UP | _DOWN: "│",
    _LEFT | _UP: "┘",
    _RIGHT | _UP: "└",
    _LEFT | _DOWN: "┐",
    _RIGHT | _DOWN: "┌",
    _LEFT | _RIGHT | _UP: "┴",
    _LEFT | _RIGHT | _DOWN: "┬",
    _LEFT | _UP | _DOWN: "┤",
    _RIGHT | _UP | _DOWN: "├",
    _LEFT | _RIGHT | _UP | _DOWN: "┼",
}


class Bundle(NamedTuple):
    """Lines between two layers that meet: all of `sources` are needed by all of `goals`."""

    sources: frozenset[int]
    goals: frozenset[int]


def as_boxes(boxes: Sequence[Box], width: int | None = None) -> list[str] | None:
    """The picture, from left to right; None if it is large, or wider than that, or its lines would cross."""
    if not 0 < len(boxes) <= _MOST:
        return None
    needs = _stretched(tuple(box.needs for box in boxes))
    layout = lay_out(needs)
    bundles = _bundled(needs, layout)
    if bundles is None:
        return None
    page = _Page(boxes, layout)
    if width is not None and page.width > width:
        return None
    for place in range(len(needs)):
        page.draw(place)
    for bundle in bundles:
        page.connect(bundle)
    return page.lines()


def _stretched(needs: Needs) -> Needs:
    """The same graph with places for lines to pass through layers: no line is longer than from one to the next. Lines
    from one node share their places."""
    layers = [spot.layer for spot in lay_out(needs).spots]
    longer: list[tuple[int, ...]] = list(needs)
    passes: dict[tuple[int, int], int] = {}
    for place, own in enumerate(needs):
        longer[place] = tuple(_passed(need, layers[place] - layers[need] - 1, longer, passes) for need in own)
    return tuple(longer)


def _passed(need: int, layers: int, longer: list[tuple[int, ...]], passes: dict[tuple[int, int], int]) -> int:
    """The place from which a line reaches what needs it: the node itself, or the last of the places it passes."""
    last = need
    for step in range(1, layers + 1):
        if (need, step) not in passes:
            passes[need, step] = len(longer)
            longer.append((last,))
        last = passes[need, step]
    return last


def _bundled(needs: Needs, layout: Layout) -> list[Bundle] | None:
    """The lines as bundles; None if some lines meet that do not belong together."""
    bundles: list[Bundle] = []
    for place, own in enumerate(needs):
        if not own:
            continue
        sources, goals = frozenset(own), frozenset({place})
        for other in [one for one in bundles if one.sources & sources]:
            if other.sources != sources:
                return None
            bundles.remove(other)
            goals |= other.goals
        bundles.append(Bundle(sources, goals))
    taken: dict[int, list[tuple[float, float]]] = {}
    for bundle in bundles:
        heights = [layout.spots[place].y for place in bundle.sources | bundle.goals]
        beside = taken.setdefault(layout.spots[min(bundle.sources)].layer, [])
        low, high = min(heights), max(heights)
        if any(low <= other_high and other_low <= high for other_low, other_high in beside):
            return None
        beside.append((low, high))
    return bundles


class _Page:
    """Where things are drawn, cell by cell."""

    def __init__(self, boxes: Sequence[Box], layout: Layout) -> None:
        from rich.cells import cell_len

        self._boxes = boxes
        self._spots = layout.spots
        self._strokes: dict[tuple[int, int], int] = {}
        self._texts: dict[tuple[int, int], str] = {}
        self._cell_len = cell_len
        inner = [0] * (1 + max(spot.layer for spot in layout.spots))
        for box, spot in zip(boxes, layout.spots, strict=False):
            inner[spot.layer] = max(inner[spot.layer], cell_len(label(box)))
        self._widths = [most + 4 for most in inner]
        self._lefts = [sum(self._widths[:layer]) + layer * _GAP for layer in range(len(inner))]
        self.width = self._lefts[-1] + self._widths[-1]

    def draw(self, place: int) -> None:
        """A node as a box; a place that a line passes through as that line."""
        left, right, middle = self._left(place), self._right(place), self._middle(place)
        if place >= len(self._boxes):
            self._across(left, right, middle)
            return
        for line in (middle - 1, middle + 1):
            self._across(left, right, line)
        for side in (left, right):
            self._down(side, middle - 1, middle + 1)
        self._texts[left + 2, middle] = label(self._boxes[place])

    def connect(self, bundle: Bundle) -> None:
        first = next(iter(bundle.sources))
        track = self._right(first) + 1 + _TRACK
        middles = [self._middle(place) for place in (*bundle.sources, *bundle.goals)]
        self._down(track, min(middles), max(middles))
        for place in bundle.sources:
            self._across(self._right(place) + (place < len(self._boxes)), track, self._middle(place))
        for place in bundle.goals:
            is_box = place < len(self._boxes)
            self._across(track, self._left(place) - is_box, self._middle(place))
            if is_box:
                self._texts[self._left(place) - 1, self._middle(place)] = "▶"

    def lines(self) -> list[str]:
        height = 1 + max(line for _, line in self._strokes)
        return [self._line(line) for line in range(height)]

    def _line(self, line: int) -> str:
        shown, at = "", 0
        while at < self.width:
            text = self._texts.get((at, line)) or _SIGNS.get(self._strokes.get((at, line), 0), " ")
            shown += text
            at += self._cell_len(text)
        return shown.rstrip()

    def _across(self, left: int, right: int, line: int) -> None:
        for at in range(left, right):
            self._stroke(at, line, _RIGHT)
            self._stroke(at + 1, line, _LEFT)

    def _down(self, at: int, top: int, bottom: int) -> None:
        for line in range(top, bottom):
            self._stroke(at, line, _DOWN)
            self._stroke(at, line + 1, _UP)

    def _stroke(self, at: int, line: int, side: int) -> None:
        self._strokes[at, line] = self._strokes.get((at, line), 0) | side

    def _left(self, place: int) -> int:
        return self._lefts[self._spots[place].layer]

    def _right(self, place: int) -> int:
        return self._left(place) + self._widths[self._spots[place].layer] - 1

    def _middle(self, place: int) -> int:
        return round(self._spots[place].y * _LINES / (NODE_HEIGHT + GAP_HEIGHT)) + 1
