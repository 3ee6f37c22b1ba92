"""The order in which things can be done that need each other. Walks and never recurses, because chains are long."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence


def in_order(needs: Sequence[Sequence[int]]) -> list[int]:
    """All places, each after those it needs; those in a circle, and behind one, are left out."""
    missing = [len(set(own)) for own in needs]
    followers: list[list[int]] = [[] for _ in needs]
    for place, own in enumerate(needs):
        for need in set(own):
            followers[need].append(place)
    ready = deque(place for place, count in enumerate(missing) if count == 0)
    order = []
    while ready:
        order.append(place := ready.popleft())
        for follower in followers[place]:
            missing[follower] -= 1
            if missing[follower] == 0:
                ready.append(follower)
    return order


def find_circle(needs: Sequence[Sequence[int]]) -> list[int]:
    """Places that need each other in a circle, in order; empty if there are none."""
    left = set(range(len(needs))).difference(in_order(needs))
    if not left:
        return []
    # Every step that is left needs another that is left: going from need to need must come back somewhere.
    place = min(left)
    seen: dict[int, int] = {}
    path: list[int] = []
    while place not in seen:
        seen[place] = len(path)
        path.append(place)
        place = next(need for need in needs[place] if need in left)
    return path[seen[place] :][::-1]
