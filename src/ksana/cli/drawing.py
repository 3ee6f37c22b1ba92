"""Chains as text: layer by layer for people, or as mermaid and dot for programs that draw."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ksana.domain.layout import lay_out


class Box(NamedTuple):
    """A node as it is drawn; `mark` is the icon of its state, if there is a run."""

    id: str
    kind: str
    needs: tuple[int, ...]
    mark: str = ""


def as_list(boxes: Sequence[Box]) -> list[str]:
    """A line for each node: those that may run side by side stand in one layer, with what each of them needs."""
    spots = lay_out(tuple(box.needs for box in boxes)).spots
    places = sorted(range(len(boxes)), key=lambda place: (spots[place].layer, spots[place].row))
    width = max((len(label(box)) for box in boxes), default=0)
    digits = len(str(max((spot.layer + 1 for spot in spots), default=1)))
    lines = []
    last = -1
    for at, place in enumerate(places):
        box, layer = boxes[place], spots[place].layer
        number = f"{layer + 1:>{digits}}" if layer != last else " " * digits
        is_more = at + 1 < len(places) and spots[places[at + 1]].layer == layer
        rail = ("┬" if is_more else "─") if layer != last else ("├" if is_more else "└")
        needs = ", ".join(boxes[need].id for need in box.needs)
        arrow = f"  ◀─ {needs}" if needs else ""
        lines.append(f"{number} {rail}─ {label(box):<{width}}{arrow}".rstrip())
        last = layer
    return lines


def as_mermaid(boxes: Sequence[Box]) -> list[str]:
    lines = ["flowchart LR"]
    lines += [f'  n{place}["{label(box).replace(chr(34), "#quot;")}"]' for place, box in enumerate(boxes)]
    return lines + [f"  n{need} --> n{place}" for place, box in enumerate(boxes) for need in box.needs]


def as_dot(boxes: Sequence[Box]) -> list[str]:
    lines = ["digraph chain {", "  rankdir=LR; node [shape=box];"]
    lines += [f"  n{place} [label={_quoted(label(box))}];" for place, box in enumerate(boxes)]
    lines += [f"  n{need} -> n{place};" for place, box in enumerate(boxes) for need in box.needs]
    return [*lines, "}"]


def label(box: Box) -> str:
    """What stands in the box."""
    name = f"{box.mark} {box.id}" if box.mark else box.id
    return f"{name} ({box.kind})"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
