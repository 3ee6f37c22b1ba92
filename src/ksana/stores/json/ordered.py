"""Keys in rising order, alone or by group: what the tables are found by."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from datetime import datetime
from operator import itemgetter
from typing import Any, Generic, TypeVar

K = TypeVar("K", bound=Any)
G = TypeVar("G")

_instant = itemgetter(0)


class Ordered(list[K]):
    """Keys in rising order. Finding is by bisection; what it costs to move the rest along is a fraction of that."""

    def add(self, key: K) -> None:
        if not self or self[-1] < key:
            self.append(key)
        else:
            insort(self, key)

    def discard(self, key: K) -> None:
        at = bisect_left(self, key)
        if at < len(self) and self[at] == key:
            del self[at]

    def below(self, key: Any) -> int:
        """How many keys are less than this one."""
        return bisect_left(self, key)

    def through(self, instant: datetime) -> int:
        """How many keys, where each begins with an instant, have come by this one."""
        return bisect_right(self, instant, key=_instant)


class Grouped(Generic[G, K]):
    """Ordered keys by group; a group without keys is not there."""

    __slots__ = ("_groups",)

    _NONE: Ordered[Any] = Ordered()

    def __init__(self) -> None:
        self._groups: dict[G, Ordered[K]] = {}

    def __getitem__(self, group: G) -> Ordered[K]:
        """The keys of a group, to be read only."""
        return self._groups.get(group, self._NONE)

    def groups(self) -> list[G]:
        return list(self._groups)

    def add(self, group: G, key: K) -> None:
        keys = self._groups.get(group)
        if keys is None:
            keys = self._groups[group] = Ordered()
        keys.add(key)

    def discard(self, group: G, key: K) -> None:
        keys = self._groups.get(group)
        if keys is not None:
            keys.discard(key)
            if not keys:
                del self._groups[group]
