"""Where the nodes of a chain are drawn."""

from __future__ import annotations

from collections import defaultdict
from itertools import combinations

from hypothesis import given, settings

from ksana.domain.chains import Shape
from ksana.domain.layout import GAP_HEIGHT, GAP_WIDTH, NODE_HEIGHT, NODE_WIDTH, Needs, lay_out
from tests.domain.chain_shapes import shapes


def crossings(needs: Needs) -> int:
    """How many edges between neighbouring layers cross in the picture."""
    spots = lay_out(needs).spots
    edges = [(spots[need], spots[place]) for place, own in enumerate(needs) for need in own]
    return sum(
        a.layer == c.layer and b.layer == d.layer and (a.row - c.row) * (b.row - d.row) < 0
        for (a, b), (c, d) in combinations(edges, 2)
    )


@settings(max_examples=60)
@given(shapes(12))
def test_every_edge_leads_to_the_right_and_no_two_nodes_touch(shape: Shape) -> None:
    layout = lay_out(shape.needs)
    layers: dict[int, list[int]] = defaultdict(list)
    for place, spot in enumerate(layout.spots):
        layers[spot.layer].append(spot.row)
        needed = [layout.spots[need].layer for need in shape.needs[place]]
        assert spot.layer == max(needed, default=-1) + 1
        assert 0 <= spot.x <= layout.width - NODE_WIDTH
        assert 0 <= spot.y <= layout.height - NODE_HEIGHT
    for rows in layers.values():
        assert sorted(rows) == list(range(len(rows)))
    for one, other in combinations(layout.spots, 2):
        assert abs(one.x - other.x) >= NODE_WIDTH + GAP_WIDTH or abs(one.y - other.y) >= NODE_HEIGHT + GAP_HEIGHT


@settings(max_examples=30)
@given(shapes(12))
def test_the_same_graph_always_looks_the_same(shape: Shape) -> None:
    assert lay_out.__wrapped__(shape.needs) == lay_out.__wrapped__(shape.needs)


@settings(max_examples=30)
@given(shapes(10))
def test_a_node_that_is_added_at_the_end_of_a_chain_moves_no_layer(shape: Shape) -> None:
    before = lay_out(shape.needs).spots
    last = max(range(len(before)), key=lambda place: before[place].layer)
    after = lay_out((*shape.needs, (last,))).spots
    assert [spot.layer for spot in after[:-1]] == [spot.layer for spot in before]


def test_a_line_is_straight_and_a_fan_is_centred() -> None:
    line = lay_out(((), (0,), (1,))).spots
    assert [(spot.layer, spot.row, spot.y) for spot in line] == [(0, 0, 0), (1, 0, 0), (2, 0, 0)]
    first, *middle, last = lay_out(((), (0,), (0,), (0,), (1, 2, 3))).spots
    assert [spot.row for spot in middle] == [0, 1, 2]
    assert first.y == last.y == middle[1].y


def test_edges_that_need_not_cross_do_not() -> None:
    assert crossings(((), (), (), (2,), (1,), (0,))) == 0
    assert crossings(((), (0,), (0,), (2,), (1,), (4, 3))) == 0


def test_nothing_takes_no_room() -> None:
    empty = lay_out(())
    assert (empty.spots, empty.width, empty.height) == ((), 0, 0)


def test_ten_thousand_nodes_in_a_line_or_side_by_side_are_laid_out() -> None:
    size = 10_000
    line = lay_out(tuple((place - 1,) if place else () for place in range(size)))
    assert line.spots[-1].layer == size - 1
    assert line.height == NODE_HEIGHT
    wide = lay_out(((), *(((0,),) * (size - 2)), tuple(range(1, size - 1))))
    assert [spot.row for spot in wide.spots[1:-1]] == list(range(size - 2))
