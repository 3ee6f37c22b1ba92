"""The graph of a chain as people write it down: read from JSON and checked as a whole."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from ksana.domain.conditions import check_condition
from ksana.domain.errors import InvalidArgument, Problem
from ksana.domain.markers import Marker, Root
from ksana.domain.ordering import find_circle, in_order
from ksana.domain.policies import OnUncertain, Retry, Timeouts
from ksana.domain.references import is_one_marker
from ksana.domain.steps import CHAIN, DEFAULT_TIMEOUT, NOOP, RETRY, Graph, Step, When
from ksana.domain.taking import LONGEST, Taker, at, either
from ksana.domain.validation import ATTEMPTS, QUEUE_LENGTH

__all__ = ["Graph", "Step", "When", "defaults_of", "read_graph"]

STEPS = 20_000
ID_LENGTH = 128
NESTED = 5
"""How deep chains may be written down within chains."""

SHOWN = 20
"""How many nodes of a circle are named."""

_WHENS = frozenset(When)


def read_graph(raw: Any, *, is_accepted: bool = False) -> Graph:
    """The graph that this JSON value describes, or InvalidArgument naming everything wrong with it. One that was
    accepted before is not looked into again."""
    return _read(raw, NESTED, is_accepted)


def _read(raw: Any, nested: int, is_accepted: bool = False) -> Graph:
    if not isinstance(raw, dict):
        raise InvalidArgument.of("", "a dag is an object with nodes")
    nodes = raw.get("nodes")
    if nodes is None or nodes == []:
        raise InvalidArgument.of("", "dag must have nodes")
    if not isinstance(nodes, list):
        raise InvalidArgument.of("nodes", "must be a list of nodes")
    if len(nodes) > STEPS:
        raise InvalidArgument.of("nodes", f"at most {STEPS} nodes, not {len(nodes)}")
    reader = _Reader(nested, is_accepted)
    ids = [reader.id_of(f"nodes[{i}]", node) for i, node in enumerate(nodes)]
    places: dict[str, int] = {}
    for i, step_id in enumerate(ids):
        if step_id and places.setdefault(step_id, i) != i:
            reader.problem(f"nodes[{i}].id", f"{step_id!r} is taken by nodes[{places[step_id]}]")
    steps = tuple(reader.step(f"nodes[{i}]", node, ids[i], places) for i, node in enumerate(nodes) if ids[i])
    graph = Graph(
        steps=steps,
        max_parallel=reader.count("", raw, "maxParallel", "max_parallel"),
        fail_fast=reader.flag("", raw, "failFast", "fail_fast"),
        timeout=reader.span("", raw, "timeout"),
        defaults=reader.mapping("", raw, "params", "defaults"),
    )
    if not reader.problems and not is_accepted:
        reader.problems += _problems_of(graph)
    if reader.problems:
        raise InvalidArgument(reader.problems)
    return graph


def defaults_of(raw: dict[str, Any]) -> dict[str, Any]:
    """The parameters that a dag declares, without reading the rest of it."""
    return Taker().mapping("", raw, "params", "defaults")


def _problems_of(graph: Graph) -> list[Problem]:
    """What is wrong between steps that are each right."""
    needs = [step.needs for step in graph.steps]
    order = in_order(needs)
    if len(order) < len(needs):
        circle = [graph.steps[place].id for place in find_circle(needs)]
        shown = circle if len(circle) <= SHOWN else [*circle[:SHOWN], f"… {len(circle) - SHOWN} more"]
        names = " -> ".join([*shown, circle[0]])
        return [Problem("nodes", f"the nodes depend on each other in a circle: {names}")]
    problems = []
    asked: dict[int, set[int]] = {}
    for place, step in enumerate(graph.steps):
        if step.when is When.ANY_FAILED and not step.needs:
            why = "any_failed speaks of the nodes in dependsOn; there are none"
            problems.append(Problem(f"nodes[{place}].when", why))
        for field, marker in step.markers():
            if problem := _lost(graph, step, field, marker):
                problems.append(Problem(f"nodes[{place}].{field}", f"{{{{{marker.text}}}}}: {problem}"))
            elif marker.root is Root.ARTIFACT:
                asked.setdefault(place, set()).add(graph.place_of(marker.step))
    return [*problems, *_not_upstream(graph, order, asked)]


def _lost(graph: Graph, step: Step, field: str, marker: Marker) -> str:
    """Why a marker will never stand for anything; nothing if it may."""
    match marker.root:
        case Root.ARTIFACT if graph.place_of(marker.step) < 0:
            return f"there is no node {marker.step!r}"
        case Root.PARAMS if marker.path[0] not in graph.defaults:
            return f"the chain has no parameter {marker.path[0]!r}; declare it with its default under params"
        case Root.ITEM | Root.INDEX if step.map is None or field != "cfg":
            return "only the cfg of a node with a map can speak of its items"
        case _:
            return ""


def _not_upstream(graph: Graph, order: list[int], asked: dict[int, set[int]]) -> Iterator[Problem]:
    """An artifact is there only if its step is sure to have ended: it must be needed, directly or through others."""
    wanted = sorted(set().union(*asked.values()))
    # One bit for each step that somebody asks for: thousands of steps cost a few bytes each, and no walk of their own.
    bits = {place: 1 << number for number, place in enumerate(wanted)}
    upstream = [0] * len(graph.steps)
    for place in order if wanted else ():
        for need in graph.steps[place].needs:
            upstream[place] |= upstream[need] | bits.get(need, 0)
    for place, others in asked.items():
        for other in sorted(others):
            if not upstream[place] & bits[other]:
                step_id = graph.steps[other].id
                yield Problem(
                    f"nodes[{place}]",
                    f"uses the artifact of {step_id!r} but does not depend on it; add it to dependsOn",
                )


class _Reader(Taker):
    """Takes steps out of JSON."""

    def __init__(self, nested: int, is_accepted: bool) -> None:
        super().__init__()
        self._nested = nested
        self._is_accepted = is_accepted

    def id_of(self, path: str, node: Any) -> str:
        if not isinstance(node, dict):
            self.problem(path, "must be an object with an id")
            return ""
        step_id = either(node, "id", "nodeId", "node_id")
        if not isinstance(step_id, str) or not step_id.strip():
            self.problem(f"{path}.id", "give the node an id, a text that is not blank")
            return ""
        if len(step_id) > ID_LENGTH or not step_id.isprintable():
            self.problem(f"{path}.id", f"must be printable and at most {ID_LENGTH} characters")
            return ""
        return step_id

    def step(self, path: str, node: dict[str, Any], step_id: str, places: dict[str, int]) -> Step:
        when, condition = self._when(path, node)
        step = Step(
            id=step_id,
            kind=self.text(path, node, "type") or NOOP,
            config=self.mapping(path, node, "cfg", "config"),
            needs=tuple(dict.fromkeys(self._needs(path, node, places))),
            when=when,
            condition=condition,
            map=self._map(path, node),
            max_parallel=self.count(path, node, "maxParallel", "max_parallel"),
            retry=self._retry(f"{path}.retry", node.get("retry")),
            timeouts=Timeouts(
                total=self.span(path, node, "timeout") or DEFAULT_TIMEOUT,
                callback=self.span(path, node, "callbackTimeout", "callback_timeout") or LONGEST,
            ),
            on_uncertain=self.choice(path, node, OnUncertain, "onUncertain", "on_uncertain"),
            queue=self._queue(path, node),
        )
        if step.kind == CHAIN and "nodes" in step.config and not self._is_accepted:
            self._chain_within(f"{path}.cfg", step.config)
        return step

    def _chain_within(self, path: str, raw: dict[str, Any]) -> None:
        if not self._nested:
            self.problem(path, f"chains are written within chains at most {NESTED} deep; make it a chain of its own")
            return
        try:
            _read(raw, self._nested - 1)
        except InvalidArgument as error:
            self.problems += [Problem(at(path, field) if field else path, message) for field, message in error.problems]

    def _when(self, path: str, node: dict[str, Any]) -> tuple[When, str]:
        """When the step runs, and its condition: `when` is one of three words, or a condition itself."""
        when, condition = self.text(path, node, "when"), self.text(path, node, "if", "condition")
        if not when or when in _WHENS:
            self._check(f"{path}.if", condition)
            return When(when or When.ALL_SUCCESS), condition
        if condition:
            self.problem(f"{path}.when", "is a condition, and so is if; join them with and")
        else:
            self._check(f"{path}.when", when, f"; when is one of {', '.join(When)}, or a condition")
        return When.ALL_SUCCESS, when

    def _check(self, field: str, condition: str, hint: str = "") -> None:
        try:
            if condition and not self._is_accepted:
                check_condition(condition)
        except InvalidArgument as error:
            self.problem(field, f"{error.message}{hint}")

    def _needs(self, path: str, node: dict[str, Any], places: dict[str, int]) -> Iterator[int]:
        given = either(node, "dependsOn", "depends_on", "deps", "needs")
        if given is None:
            return
        if isinstance(given, str):
            given = [given]
        if not isinstance(given, list):
            self.problem(f"{path}.dependsOn", "must be a list of node ids")
            return
        for need in given:
            place = places.get(need) if isinstance(need, str) else None
            if place is None:
                self.problem(f"{path}.dependsOn", f"there is no node {need!r}")
            else:
                yield place

    def _retry(self, path: str, given: Any) -> Retry:
        if given is None:
            return RETRY
        if not isinstance(given, dict):
            self.problem(path, "must be an object with maxAttempts and backoff")
            return RETRY
        delay = self.span(
            path, given, "backoff", "backoffMillis", "backoff_millis", may_be_zero=True, most=RETRY.max_delay
        )
        return msgspec.structs.replace(
            RETRY,
            max_attempts=self.count(path, given, "maxAttempts", "max_attempts", most=ATTEMPTS) or RETRY.max_attempts,
            initial_delay=RETRY.initial_delay if delay is None else delay,
            multiplier=self.number(path, given, "backoffMultiplier", "backoff_multiplier", most=100)
            or RETRY.multiplier,
        )

    def _map(self, path: str, node: dict[str, Any]) -> Any:
        given = node.get("map")
        if given is None:
            return None
        if not isinstance(given, list) and not (isinstance(given, str) and is_one_marker(given)):
            self.problem(f"{path}.map", "must be a list, or a marker such as {{node.artifact}} that stands for one")
            return None
        return given

    def _queue(self, path: str, node: dict[str, Any]) -> str:
        queue = self.text(path, node, "queue")
        if len(queue) > QUEUE_LENGTH or not queue.isascii() or not queue.isprintable():
            self.problem(f"{path}.queue", f"must be printable ASCII of at most {QUEUE_LENGTH} characters")
        return queue
