"""Chains of any shape, and what may become of their steps."""

from __future__ import annotations

from collections.abc import Collection

from hypothesis import strategies as st

from ksana.domain.chains import Shape
from ksana.domain.graph import When
from ksana.domain.states import State

UNSUCCESSFUL_ENDS = (State.FAILED, State.TIMEOUT, State.DEAD_LETTER, State.CANCELED, State.SKIPPED)
ENDS = (State.SUCCESS, *UNSUCCESSFUL_ENDS)


def shape(
    needs: list[list[int]],
    whens: list[When] | None = None,
    most: int | None = None,
    fail_fast: bool = False,
    idle: Collection[int] = (),
) -> Shape:
    followers: list[list[int]] = [[] for _ in needs]
    for place, own in enumerate(needs):
        for need in own:
            followers[need].append(place)
    return Shape(
        tuple(map(tuple, needs)),
        tuple(whens or [When.ALL_SUCCESS] * len(needs)),
        tuple(map(tuple, followers)),
        most,
        fail_fast,
        idle=frozenset(idle),
    )


@st.composite
def shapes(draw: st.DrawFn, steps: int = 7) -> Shape:
    """Any graph without circles, its steps in any order."""
    size = draw(st.integers(1, steps))
    order = draw(st.permutations(range(size)))
    needs: list[list[int]] = [[] for _ in range(size)]
    for rank, place in enumerate(order):
        if rank:
            needs[place] = draw(st.lists(st.sampled_from(order[:rank]), max_size=3, unique=True))
    whens = draw(st.lists(st.sampled_from(When), min_size=size, max_size=size))
    idle = draw(st.sets(st.integers(0, size - 1)))
    return shape(needs, whens, draw(st.none() | st.integers(1, 3)), draw(st.booleans()), idle)
