"""What steps of chains have handed on. A step with children of its own hands on what they have: the list of all items,
the ends of a chain by their ids, or what the one run of a job gave."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from ksana.domain.graph import Graph
from ksana.domain.plans import ChainPlan, ItemPlan, JobPlan, MapPlan, read_plan
from ksana.domain.ports import Store
from ksana.domain.runs import Run


class Artifacts:
    """Reads artifacts of runs."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def of(self, runs: Iterable[Run]) -> dict[int, Any]:
        """What these runs have handed on, by their ids; those that have nothing to show are left out."""
        runs = list(runs)
        kept = await self._store.kept([run.id for run in runs])
        found: dict[int, Any] = {}
        for run in runs:
            own = kept.get(run.id)
            if own is not None and own.artifact is not None:
                found[run.id] = msgspec.json.decode(own.artifact)
            elif run.parent_id is not None and run.input is not None and run.ended_at is not None:
                found[run.id] = await self._gathered(run)
        return found

    async def _gathered(self, run: Run) -> Any:
        children = await self._store.children(run.id)
        artifacts = await self.of(children)
        match read_plan(run.input):
            case MapPlan():
                return [artifacts.get(child.id) for child in children]
            case ChainPlan() as plan:
                ends = _ends(plan.graph) if children else ()
                return {step_id: artifacts.get(children[place].id) for place, step_id in ends}
            case JobPlan() | ItemPlan():
                return artifacts.get(children[0].id) if children else None


def _ends(graph: Graph) -> Iterable[tuple[int, str]]:
    """The steps no other step needs."""
    needed = {need for step in graph.steps for need in step.needs}
    return [(place, step.id) for place, step in enumerate(graph.steps) if place not in needed]


def artifact_of(result: bytes | None) -> bytes | None:
    """What a target answered, as JSON: its answer if it is JSON, else the text of it."""
    if result is None:
        return None
    try:
        msgspec.json.decode(result)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return msgspec.json.encode(result.decode("utf-8", "replace"))
    return result
