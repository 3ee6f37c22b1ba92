"""Numbers under names, written in the Prometheus text format.

The client library spends about 6 µs on a line, a second for a few thousand jobs, and the loop would stand still for it;
these tables are plain dicts that cost a fraction of that to add to and to write. They are written from copies, so a
thread may do it while the loop goes on counting.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import Final, Literal

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
OTHER: Final = "other"

Labels = tuple[str, ...]


class Table:
    """One counter or gauge: a number per combination of label values.

    It never grows past `limit` of them: what comes later is counted under `other`.
    """

    def __init__(
        self,
        name: str,
        kind: Literal["counter", "gauge"],
        help: str,
        labels: Sequence[str] = (),
        *,
        limit: int = 1000,
    ) -> None:
        self.name = name
        self.kind = kind
        self.labels = tuple(labels)
        self.values: dict[Labels, float] = {}
        self._help = help
        self._limit = limit

    def add(self, *labels: str, amount: float = 1) -> None:
        values = self.values
        if labels not in values and len(values) >= self._limit:
            labels = (OTHER,) * len(labels)
        values[labels] = values.get(labels, 0) + amount

    def set(self, *labels: str, to: float) -> None:
        if labels not in self.values and len(self.values) >= self._limit:
            labels = (OTHER,) * len(labels)
        self.values[labels] = to

    def drop(self, *labels: str) -> None:
        self.values.pop(labels, None)

    def text(self) -> str:
        lines = [_head(self.name, self.kind, self._help)]
        for labels, value in list(self.values.items()):
            told = _labels(self.labels, labels)
            lines.append(f"{self.name}{{{told}}} {value}\n" if told else f"{self.name} {value}\n")
        return "".join(lines)


class Distribution:
    """How many values fell into each bucket, and their sum."""

    __slots__ = ("counts", "total")

    def __init__(self, buckets: int) -> None:
        self.counts = [0] * (buckets + 1)
        self.total = 0.0


class Histogram:
    """One histogram: a distribution per combination of label values, all over the same bounds."""

    def __init__(
        self, name: str, help: str, bounds: Sequence[float], labels: Sequence[str] = (), *, limit: int = 1000
    ) -> None:
        self.name = name
        self.kind: Literal["histogram"] = "histogram"
        self.labels = tuple(labels)
        self.bounds = tuple(bounds)
        self.children: dict[Labels, Distribution] = {}
        self._help = help
        self._limit = limit

    def child(self, *labels: str) -> Distribution:
        found = self.children.get(labels)
        if found is None:
            if len(self.children) >= self._limit:
                labels = (OTHER,) * len(labels)
            found = self.children.setdefault(labels, Distribution(len(self.bounds)))
        return found

    def observe(self, child: Distribution, value: float) -> None:
        child.counts[bisect_left(self.bounds, value)] += 1
        child.total += value

    def drop(self, *labels: str) -> None:
        self.children.pop(labels, None)

    def text(self) -> str:
        name, lines = self.name, [_head(self.name, self.kind, self._help)]
        bounds = [*map(str, self.bounds), "+Inf"]
        for labels, child in list(self.children.items()):
            told = _labels(self.labels, labels)
            opening = f"{name}_bucket{{{told}," if told else f"{name}_bucket{{"
            closing = f"{{{told}}}" if told else ""
            reached = 0
            for bound, count in zip(bounds, child.counts, strict=True):
                reached += count
                lines.append(f'{opening}le="{bound}"}} {reached}\n')
            lines.append(f"{name}_sum{closing} {child.total}\n{name}_count{closing} {reached}\n")
        return "".join(lines)


def _head(name: str, kind: str, help: str) -> str:
    return f"# HELP {name} {help}\n# TYPE {name} {kind}\n"


def _labels(names: Labels, values: Labels) -> str:
    return ",".join(f'{name}="{_escaped(value)}"' for name, value in zip(names, values, strict=True))


def _escaped(value: str) -> str:
    if "\\" in value or '"' in value or "\n" in value:
        return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
    return value
