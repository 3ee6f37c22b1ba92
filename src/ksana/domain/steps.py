"""Steps of chains as values: what each does, what it needs, and what of other steps it asks for."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from enum import StrEnum
from functools import cached_property
from typing import Any

import msgspec

from ksana.domain.conditions import markers_of_condition
from ksana.domain.markers import Marker, Root, Scope
from ksana.domain.policies import OnUncertain, Retry, RetryStrategy, Timeouts
from ksana.domain.references import has_markers, markers_of, render
from ksana.domain.taking import LONGEST

CHAIN = "chain"
"""The kind of target, and of step, whose runs are graphs."""

NOOP = "noop"
"""The kind of a step that does nothing, and of one that does not say what it does."""

DEFAULT_TIMEOUT = timedelta(minutes=5)

RETRY = Retry(
    max_attempts=3,
    strategy=RetryStrategy.EXPONENTIAL,
    initial_delay=timedelta(seconds=1),
    multiplier=2.0,
    max_delay=timedelta(days=30),
)
"""How a step is tried again unless it says otherwise."""


class When(StrEnum):
    """What must have become of the steps a step needs, for it to run rather than be skipped."""

    ALL_SUCCESS = "all_success"
    ALL_DONE = "all_done"
    ANY_FAILED = "any_failed"


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One node of a chain. `needs` are the places of other steps; `map` is a list, or a marker that stands for one."""

    id: str
    kind: str = NOOP
    config: dict[str, Any] = {}
    needs: tuple[int, ...] = ()
    when: When = When.ALL_SUCCESS
    condition: str = ""
    map: Any = None
    max_parallel: int | None = None
    retry: Retry = RETRY
    # A step that a person completes, or that a worker acknowledges, waits as long as it takes.
    timeouts: Timeouts = Timeouts(total=DEFAULT_TIMEOUT, callback=LONGEST)
    on_uncertain: OnUncertain | None = None
    queue: str = ""

    @property
    def does_nothing(self) -> bool:
        """Whether there is nothing to find out about it, once it may start, but that it is done."""
        return self.kind == NOOP and self.map is None and not self.condition and not has_markers(self.config)

    @property
    def own_config(self) -> dict[str, Any]:
        """The config without the nodes of a chain within it, whose markers are theirs and speak of each other."""
        if self.kind != CHAIN or "nodes" not in self.config:
            return self.config
        return {name: value for name, value in self.config.items() if name != "nodes"}

    @property
    def references(self) -> frozenset[str]:
        """The ids of the steps whose artifacts it asks for."""
        return frozenset(marker.step for _, marker in self.markers() if marker.root is Root.ARTIFACT)

    def markers(self) -> Iterator[tuple[str, Marker]]:
        """All its markers, and in which field they stand."""
        for marker in markers_of(self.own_config):
            yield "cfg", marker
        for marker in markers_of(self.map):
            yield "map", marker
        if self.condition:
            for marker in markers_of_condition(self.condition):
                yield "if", marker

    def config_for(self, scope: Scope) -> dict[str, Any]:
        """The config with its markers filled in, or Unresolved; the very same object if there are none."""
        own = self.own_config
        filled: dict[str, Any] = render(own, scope)
        if filled is own:
            return self.config
        return filled if own is self.config else {**self.config, **filled}


class Graph(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """Steps in the order of their definition. `defaults` are the parameters a start may set, with their values."""

    steps: tuple[Step, ...]
    max_parallel: int | None = None
    fail_fast: bool = False
    timeout: timedelta | None = None
    defaults: dict[str, Any] = {}

    def place_of(self, step_id: str) -> int:
        """The place of the step with this id; -1 if there is none."""
        return self._places.get(step_id, -1)

    @cached_property
    def _places(self) -> dict[str, int]:
        return {step.id: place for place, step in enumerate(self.steps)}
