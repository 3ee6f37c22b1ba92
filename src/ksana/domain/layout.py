"""Where the nodes of a chain are drawn: in layers from left to right, each node to the right of all it needs. The same
graph always looks the same, whatever has become of its nodes. Walks and never recurses, because chains are long."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import msgspec

from ksana.domain.ordering import in_order

NODE_WIDTH = 176
NODE_HEIGHT = 44
GAP_WIDTH = 64
GAP_HEIGHT = 20

_SWEEPS = 3

Needs = tuple[tuple[int, ...], ...]


class Spot(msgspec.Struct, frozen=True, gc=False):
    """Where a node is drawn: its layer from the left, its row in the layer, and its upper left corner."""

    layer: int
    row: int
    x: float
    y: float


class Layout(msgspec.Struct, frozen=True):
    """The spots of all nodes, in the order of the definition, and how much room the picture takes."""

    spots: tuple[Spot, ...]
    width: float
    height: float


@lru_cache(maxsize=32)
def lay_out(needs: Needs) -> Layout:
    """The layout of nodes that need each other so."""
    layers = _layers(needs)
    _untangle(layers, needs)
    tallest = max(map(len, layers), default=0)
    spots: list[Spot] = [Spot(0, 0, 0, 0)] * len(needs)
    for layer, places in enumerate(layers):
        for row, place in enumerate(places):
            spots[place] = Spot(
                layer,
                row,
                layer * (NODE_WIDTH + GAP_WIDTH),
                (row + (tallest - len(places)) / 2) * (NODE_HEIGHT + GAP_HEIGHT),
            )
    return Layout(tuple(spots), _extent(len(layers), NODE_WIDTH, GAP_WIDTH), _extent(tallest, NODE_HEIGHT, GAP_HEIGHT))


def _extent(count: int, size: int, gap: int) -> float:
    return count * size + max(0, count - 1) * gap


def _layers(needs: Needs) -> list[list[int]]:
    """The nodes of each layer, in the order of the definition; a node stands just behind the last that it needs."""
    depth = [0] * len(needs)
    for place in in_order(needs):
        depth[place] = max((depth[need] + 1 for need in needs[place]), default=0)
    layers: list[list[int]] = [[] for _ in range(max(depth, default=-1) + 1)]
    for place, layer in enumerate(depth):
        layers[layer].append(place)
    return layers


def _untangle(layers: list[list[int]], needs: Needs) -> None:
    """Move nodes up and down in their layers towards the middle of their neighbours, so that fewer edges cross."""
    followers: list[list[int]] = [[] for _ in needs]
    for place, own in enumerate(needs):
        for need in own:
            followers[need].append(place)
    height = [0.0] * len(needs)
    for places in layers:
        _measure(places, height)
    for sweep in range(_SWEEPS):
        is_forward = sweep % 2 == 0
        neighbours: Sequence[Sequence[int]] = needs if is_forward else followers
        for places in layers if is_forward else reversed(layers):
            wanted = {place: _middle(place, neighbours[place], height) for place in places}
            # Sorting is stable: what wants the same height stays in its order.
            places.sort(key=wanted.__getitem__)
            _measure(places, height)


def _measure(places: list[int], height: list[float]) -> None:
    """Layers are drawn around one middle line; heights count from there."""
    for row, place in enumerate(places):
        height[place] = row - (len(places) - 1) / 2


def _middle(place: int, neighbours: Sequence[int], height: list[float]) -> float:
    if not neighbours:
        return height[place]
    return sum(height[neighbour] for neighbour in neighbours) / len(neighbours)
