from __future__ import annotations

import copy
from typing import Any

import pytest

from ksana.domain.errors import InvalidArgument
from ksana.domain.outcomes import Verdict
from ksana.targets.chains import ChainTarget, JobStep
from tests.targets.contexts import attempt_context


def test_a_dag_is_kept_exactly_as_it_was_written() -> None:
    dag = {"job": "x", "nodes": [{"nodeId": "a", "colour": "red"}, {"id": "b", "deps": ["a"], "timeout": "1m"}]}
    before = copy.deepcopy(dag)
    assert ChainTarget().check(dag) is dag
    assert dag == before


@pytest.mark.parametrize(
    ("dag", "message"),
    [
        ({}, "dag must have nodes"),
        ({"nodes": [{"id": "a", "deps": ["b"]}]}, "target.nodes[0].dependsOn: there is no node 'b'"),
        ({"nodes": [{"id": "a", "cfg": {"x": object()}}]}, "target.nodes: holds what JSON cannot"),
    ],
)
def test_a_dag_that_is_none_is_refused(dag: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        ChainTarget().check(dag)
    assert refused.value.message.startswith(message)


@pytest.mark.parametrize("kind", ["job", "task"])
def test_a_step_names_a_job_by_its_id_or_its_name(kind: str) -> None:
    step = JobStep(kind)
    for config in ({"job": 3}, {"task": "nightly", "input": {"x": [1]}}):
        assert step.check(config) is config
    wrong: list[dict[str, Any]] = [{}, {"job": 1, "task": 2}, {"job": True}, {"job": " "}, {"job": [1]}]
    for config in [*wrong, {"job": 1, "colour": "red"}, {"job": 1, "input": object()}]:
        with pytest.raises(InvalidArgument):
            step.check(config)


@pytest.mark.parametrize("target", [ChainTarget(), JobStep("job")])
async def test_what_others_do_has_no_attempt_of_its_own(target: ChainTarget | JobStep) -> None:
    outcome = await target.execute(attempt_context(), {})
    assert (outcome.verdict, bool(outcome.error)) == (Verdict.FAIL, True)
    assert target.awaits_callback({}) is False
    await target.close()
