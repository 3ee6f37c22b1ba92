"""Chains on their way, kept in mind so that a step costs what it changes and not what the chain holds.

The table of runs tells a chain of every child that changes, by a step, by one taken back, by a restored page alike. So
a chain always knows where it says something else than the table, and is never trusted there.
"""

from __future__ import annotations

from collections.abc import Sequence

from ksana.domain.chains import Advance, Chain, Shape
from ksana.domain.runs import Run
from ksana.domain.states import UNDER_WAY, State


class KnownChain:
    """The chain of one run with children, whose ids follow each other from `first` on."""

    def __init__(self, parent: Run, shape: Shape, children: Sequence[Run]) -> None:
        self.shape = shape
        self.first = children[0].id
        self._plan = parent.input
        self._is_stopping = parent.state is State.STOPPING
        self._chain = Chain(shape, [child.state for child in children], is_stopping=self._is_stopping)
        self._astray: dict[int, State | None] = {}

    def is_of(self, plan: bytes | None) -> bool:
        return self._plan == plan

    def tell(self, run_id: int, state: State | None) -> None:
        """A child is in this state now; None if it is gone."""
        place, states = run_id - self.first, self._chain.states
        if state is not None and 0 <= place < len(states) and _is_alike(states[place], state):
            self._astray.pop(place, None)
        else:
            self._astray[place] = state

    def catch_up(self, parent: Run) -> bool:
        """Hear of the children that ended since; False if the family went another way, and this chain is of no use."""
        if (parent.state is State.STOPPING) is not self._is_stopping or not self.is_of(parent.input):
            return False
        ended: list[tuple[int, State]] = []
        for place, state in sorted(self._astray.items()):
            if state is None or not state.is_final or not self._is_under_way(place):
                return False
            ended.append((place, state))
        self._chain.ended(ended)
        self._astray.clear()
        return True

    def _is_under_way(self, place: int) -> bool:
        # One that ended before it began might be skipped once more, for the sake of another that ended with it.
        states = self._chain.states
        return 0 <= place < len(states) and states[place] in UNDER_WAY

    def advance(self) -> Advance:
        """What follows; it is astray until the table has it."""
        follows = self._chain.advance()
        self._astray.update(dict.fromkeys([*follows.admits, *follows.skips, *follows.passes], State.WAITING))
        return follows

    @property
    def first_failed(self) -> int | None:
        return self._chain.first_failed


def _is_alike(known: State, state: State) -> bool:
    """Whether two states are one to a chain: it does not tell apart what is under way."""
    return known is state or (known in UNDER_WAY and state in UNDER_WAY)
