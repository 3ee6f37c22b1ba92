"""How a chain moves on: from what has become of its steps follows which may start, which never will, and the end.

State-driven: the same holds whether a step ended by itself or by hand, and after a restart everything follows from the
states alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import timedelta
from heapq import heappop, heappush
from typing import NamedTuple

import msgspec

from ksana.domain.graph import Graph, When
from ksana.domain.states import FAILURES, UNDER_WAY, State


class Shape(msgspec.Struct, frozen=True):
    """What of a chain decides how it moves on: for each step what it needs and when it runs, and the bounds."""

    needs: tuple[tuple[int, ...], ...]
    whens: tuple[When, ...]
    followers: tuple[tuple[int, ...], ...]
    max_parallel: int | None = None
    fail_fast: bool = False
    timeout: timedelta | None = None
    idle: frozenset[int] = frozenset()
    """Steps that do nothing: each is done as soon as it may start."""


def shape_of(graph: Graph) -> Shape:
    followers: list[list[int]] = [[] for _ in graph.steps]
    for place, step in enumerate(graph.steps):
        for need in step.needs:
            followers[need].append(place)
    return Shape(
        tuple(step.needs for step in graph.steps),
        tuple(step.when for step in graph.steps),
        tuple(map(tuple, followers)),
        graph.max_parallel,
        graph.fail_fast,
        graph.timeout,
        frozenset(place for place, step in enumerate(graph.steps) if step.does_nothing),
    )


def flat_shape(size: int, max_parallel: int | None = None) -> Shape:
    """Steps that do not know each other."""
    return Shape(((),) * size, (When.ALL_SUCCESS,) * size, ((),) * size, max_parallel)


def may_start(shape: Shape, states: Sequence[State], place: int) -> bool:
    """Whether what has become of the steps that a step needs lets it run."""
    needs = [states[need] for need in shape.needs[place]]
    match shape.whens[place]:
        case When.ALL_SUCCESS:
            return all(state is State.SUCCESS for state in needs)
        case When.ALL_DONE:
            return all(state.is_final for state in needs)
        case When.ANY_FAILED:
            return all(state.is_final for state in needs) and any(state in FAILURES for state in needs)


class Advance(msgspec.Struct, frozen=True):
    """What follows: the steps that start now, those that never will, the end of the chain if it has come, and the steps
    that do nothing and are done."""

    admits: list[int]
    skips: list[int]
    end: State | None
    passes: list[int] = []


class Heirs(NamedTuple):
    """What follows from a success and nothing else: the steps that start, and those that do nothing and are done."""

    starts: list[int]
    passes: list[int]


_NO_HEIRS = Heirs([], [])


class Chain:
    """A chain on its way: where each step stands. Tell it what `ended`, then ask what follows."""

    def __init__(self, shape: Shape, states: Sequence[State], *, is_stopping: bool = False) -> None:
        self.shape = shape
        self.states = list(states)
        self._is_stopping = is_stopping
        self._final = 0
        self._failed: int | None = None
        self._has_canceled = False
        self._under_way = 0
        self._unmet = [sum(not self.states[need].is_final for need in needs) for needs in shape.needs]
        self._ready: list[int] = []
        self._passing: list[int] = []
        self._skips: list[int] = []
        for place, state in enumerate(self.states):
            if state.is_final:
                self._count(place, state)
            elif state is not State.WAITING:
                self._under_way += 1
        for place, needs in enumerate(shape.needs):
            if self.states[place] is State.WAITING and self._never_runs(place, needs) and not is_stopping:
                self._skips.append(place)
                self._end(place, State.SKIPPED)

    @property
    def first_failed(self) -> int | None:
        """The step whose failure is the chain's: of those that failed, the first in the definition."""
        return self._failed

    def ended(self, ended: Iterable[tuple[int, State]]) -> None:
        """Steps have come to an end."""
        for place, state in ended:
            if self.states[place].is_final:
                continue
            if self.states[place] is not State.WAITING:
                self._under_way -= 1
            self._end(place, state)

    def heirs(self, place: int) -> Heirs:
        """What follows once this step, the only one under way, has succeeded, provided that steps start by it and none
        is skipped; else nothing. The chain stays as it is."""
        if self._under_way != 1 or self.states[place] not in UNDER_WAY or not self._is_settled or not self._may_start:
            return _NO_HEIRS
        heirs = Heirs([], [])
        met: dict[int, int] = {}
        todo = [place]
        while todo:
            for follower in self.shape.followers[todo.pop()]:
                if self.shape.whens[follower] is When.ANY_FAILED or self.states[follower] is not State.WAITING:
                    return _NO_HEIRS
                met[follower] = met.get(follower, 0) + 1
                if met[follower] < self._unmet[follower]:
                    continue
                if follower in self.shape.idle:
                    heirs.passes.append(follower)
                    todo.append(follower)
                else:
                    heirs.starts.append(follower)
        most = self.shape.max_parallel
        has_room = most is None or len(heirs.starts) <= most
        return heirs if heirs.starts and has_room else _NO_HEIRS

    @property
    def _is_settled(self) -> bool:
        """Whether all that follows was asked for, and had room."""
        return not (self._ready or self._passing or self._skips)

    def advance(self) -> Advance:
        """What follows from what was told. The chain takes it as done."""
        passes = self._pass()
        skips, self._skips = self._skips, []
        admits: list[int] = []
        most = self.shape.max_parallel
        while self._may_start and self._ready and (most is None or self._under_way < most):
            place = heappop(self._ready)
            if self.states[place] is State.WAITING:
                self.states[place] = State.SCHEDULED
                self._under_way += 1
                admits.append(place)
        return Advance(admits, skips, self._verdict(), passes)

    def _pass(self) -> list[int]:
        """Steps that do nothing need no room and end at once, and so on. A list, because chains are long."""
        passes: list[int] = []
        while self._may_start and self._passing:
            place = self._passing.pop()
            if self.states[place] is State.WAITING:
                passes.append(place)
                self._end(place, State.SUCCESS)
        return passes

    @property
    def _may_start(self) -> bool:
        return not self._is_stopping and not (self.shape.fail_fast and self._failed is not None)

    def _verdict(self) -> State | None:
        if self._under_way:
            return None
        if self._is_stopping:
            return State.CANCELED
        if self._may_start and self._final < len(self.states):
            return None
        if self._failed is not None:
            return State.FAILED
        return State.CANCELED if self._has_canceled else State.SUCCESS

    def _count(self, place: int, state: State) -> None:
        self._final += 1
        if state in FAILURES:
            self._failed = place if self._failed is None else min(place, self._failed)
        elif state is State.CANCELED:
            self._has_canceled = True

    def _end(self, place: int, state: State) -> None:
        """A step ended; those that can no longer run end with it, and so on. A list, because chains are long."""
        self.states[place] = state
        todo = [place]
        while todo:
            place = todo.pop()
            self._count(place, self.states[place])
            if self._is_stopping:
                # What has not begun stays as it is: somebody may want to go on from there.
                continue
            for follower in self.shape.followers[place]:
                self._unmet[follower] -= 1
                if self.states[follower] is State.WAITING and self._never_runs(follower, (place,)):
                    self._skip(follower)
                    todo.append(follower)

    def _skip(self, place: int) -> None:
        self.states[place] = State.SKIPPED
        self._skips.append(place)

    def _never_runs(self, place: int, news: Sequence[int]) -> bool:
        """Whether a waiting step will never run; one that now may is made ready. `news` are needs not looked at yet."""
        when = self.shape.whens[place]
        if when is When.ALL_SUCCESS and any(self._is_lost(need) for need in news):
            return True
        if self._unmet[place]:
            return False
        if when is When.ANY_FAILED and not any(self.states[need] in FAILURES for need in self.shape.needs[place]):
            return True
        if place in self.shape.idle:
            self._passing.append(place)
        else:
            heappush(self._ready, place)
        return False

    def _is_lost(self, place: int) -> bool:
        state = self.states[place]
        return state.is_final and state is not State.SUCCESS
