from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from ksana.domain.chains import flat_shape
from ksana.domain.errors import InvalidArgument
from ksana.domain.graph import read_graph
from ksana.domain.jobs import Job, TargetSpec
from ksana.domain.plans import (
    ChainPlan,
    JobPlan,
    MapPlan,
    Plan,
    begun,
    check_params,
    checked_params,
    input_of,
    new_child,
    read_plan,
    shape_of_plan,
    write_plan,
)
from ksana.domain.policies import Priority
from ksana.domain.runs import Run, Trigger
from ksana.domain.states import Reason, State
from tests.domain.chain_shapes import shape

NOW = datetime(2030, 1, 1, tzinfo=UTC)
DAG: dict[str, Any] = {
    "nodes": [{"id": "a", "cfg": {"x": 1}}, {"id": "b", "deps": ["a"], "timeout": "1m"}],
    "params": {"mode": "fast", "n": 1, "any": None},
    "maxParallel": 2,
    "colour": "red",
}
STEP = read_graph(DAG).steps[1]


def a_job(kind: str = "chain", config: dict[str, Any] = DAG) -> Job:
    return Job(
        id=3, name="nightly", surface="v2", target=TargetSpec(kind, config), version=4, created_at=NOW, updated_at=NOW
    )


@pytest.mark.parametrize(
    ("plan", "expected"),
    [
        (ChainPlan(DAG, {"mode": "slow"}, "nightly"), shape([[], [0]], most=2, idle=[0, 1])),
        (MapPlan(STEP, [1, {"x": "世界"}, None], {"a": [1]}, {"mode": "fast"}), flat_shape(3)),
        (JobPlan(3), flat_shape(1)),
    ],
)
def test_a_plan_stays_what_it_is_when_it_is_stored(plan: Plan, expected: object) -> None:
    assert read_plan(write_plan(plan)) == plan
    assert shape_of_plan(plan) == expected


def test_a_run_of_a_chain_is_given_its_plan_and_any_other_just_its_input() -> None:
    assert input_of(a_job("noop", {}), b"[1]") == b"[1]"
    assert read_plan(input_of(a_job(), b'{"n": 2}')) == ChainPlan(DAG, {"n": 2}, "nightly")
    assert read_plan(input_of(a_job(), None)) == ChainPlan(DAG, {}, "nightly")
    with pytest.raises(InvalidArgument, match="params: must be an object"):
        input_of(a_job(), b"[1]")


def test_parameters_are_those_the_chain_declares_and_like_their_defaults() -> None:
    defaults = DAG["params"]
    assert checked_params(defaults, {}) == defaults
    assert checked_params(defaults, {"n": 2.5, "any": [1]}) == {"mode": "fast", "n": 2.5, "any": [1]}
    with pytest.raises(InvalidArgument) as refused:
        checked_params(defaults, {"mode": 1, "n": True, "speed": 3})
    assert {problem.field: problem.message for problem in refused.value.problems} == {
        "params.mode": "must be a text like its default",
        "params.n": "must be a number like its default",
        "params.speed": "is not declared by the chain; it has any, mode, n",
    }


def test_what_a_chain_is_started_with_is_checked_before_it_starts() -> None:
    check_params(a_job(), None)
    check_params(a_job(), b'{"mode": "slow"}')
    check_params(a_job("noop", {}), b"[1]")
    for given in (b'{"speed": 1}', b"[1]", b"null"):
        with pytest.raises(InvalidArgument):
            check_params(a_job(), given)


def test_children_are_born_waiting_or_ready_as_far_as_the_bounds_allow() -> None:
    parent = Run(id=9, job_id=3, surface="chains", queue="q", priority=Priority.HIGH, due_at=NOW, created_at=NOW)
    children = [new_child(parent, 10 + place, step, NOW, kind="noop") for place, step in enumerate("abc")]
    born, end = begun(children, shape([[], [0], []], most=1), NOW)
    assert end is None
    assert [child.state for child in born] == [State.SCHEDULED, State.WAITING, State.WAITING]
    assert [child.reason for child in born] == [None, Reason.DEPENDENCY, Reason.DEPENDENCY]
    first = born[0]
    assert (first.parent_id, first.step, first.trigger, first.job_id) == (9, "a", Trigger.CHAIN, None)
    assert (first.surface, first.queue, first.priority) == ("chains", "q", Priority.HIGH)


def test_the_run_of_a_job_in_a_chain_is_that_jobs() -> None:
    parent = Run(id=9, job_id=1, surface="chains", queue="q", due_at=NOW, created_at=NOW)
    child = new_child(parent, 10, "nightly", NOW, kind="http", queue="own", token="t", job=a_job(), input=b"1")
    assert (child.job_id, child.job_version, child.surface, child.queue) == (3, 4, "v2", "own")
    assert (child.callback_token, child.input, child.kind) == ("t", b"1", "http")
