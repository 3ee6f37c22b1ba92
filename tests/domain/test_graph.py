from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from ksana.domain.errors import InvalidArgument
from ksana.domain.graph import When, read_graph
from ksana.domain.markers import Scope
from ksana.domain.ordering import find_circle, in_order
from ksana.domain.policies import OnUncertain, RetryStrategy

LONG = 10_000


def node(id: str, *needs: str, **said: Any) -> dict[str, Any]:
    return {"id": id, "dependsOn": list(needs), **said}


def dag(*nodes: Any, **said: Any) -> dict[str, Any]:
    return {"nodes": list(nodes), **said}


def problems(raw: Any) -> dict[str, str]:
    with pytest.raises(InvalidArgument) as refused:
        read_graph(raw)
    return {problem.field: problem.message for problem in refused.value.problems}


def test_a_node_needs_nothing_but_an_id() -> None:
    graph = read_graph({"job": "nightly", "nodes": [{"id": "a", "colour": "red"}]})
    [step] = graph.steps
    assert (step.id, step.kind, step.config, step.needs, step.when) == ("a", "noop", {}, (), When.ALL_SUCCESS)
    assert (step.retry.max_attempts, step.retry.strategy) == (3, RetryStrategy.EXPONENTIAL)
    delays = [step.retry.delay_after(n) for n in (1, 2, 3)]
    assert delays == [timedelta(seconds=1), timedelta(seconds=2), timedelta(seconds=4)]
    assert (graph.max_parallel, graph.fail_fast, graph.timeout, graph.defaults) == (None, False, None, {})
    assert (step.timeouts.total, step.timeouts.callback) == (timedelta(minutes=5), timedelta(days=3650))


def test_everything_can_be_said_under_each_of_its_names() -> None:
    graph = read_graph(
        dag(
            {"nodeId": "a", "config": {"x": 1}, "type": " print ", "retry": {"maxAttempts": 5, "backoff": "1m30s"}},
            {"node_id": "b", "depends_on": ["a"], "retry": {"backoffMillis": 250, "backoffMultiplier": 1}},
            {"id": "c", "deps": ["b", "a", "b"], "cfg": {"y": 2}, "retry": {"max_attempts": 1, "backoff_millis": 0}},
            {
                "id": "d",
                "dependsOn": "c",
                "timeout": 1500,
                "callbackTimeout": "1h",
                "onUncertain": "fail",
                "queue": "q",
            },
            {"id": "e", "map": [1, 2], "max_parallel": 2, "when": "all_done", "condition": "1 == 1"},
            maxParallel=4,
            fail_fast=True,
            timeout="1h",
            params={"p": 1},
        )
    )
    a, b, c, d, e = graph.steps
    assert (a.kind, a.config, a.retry.max_attempts, a.retry.initial_delay) == (
        "print",
        {"x": 1},
        5,
        timedelta(seconds=90),
    )
    assert (b.needs, b.retry.initial_delay, b.retry.multiplier) == ((0,), timedelta(milliseconds=250), 1.0)
    assert (c.needs, c.config, c.retry.max_attempts, c.retry.initial_delay) == ((1, 0), {"y": 2}, 1, timedelta(0))
    assert (d.needs, d.timeouts.total, d.timeouts.callback) == ((2,), timedelta(seconds=1.5), timedelta(hours=1))
    assert (d.on_uncertain, d.queue) == (OnUncertain.FAIL, "q")
    assert (e.map, e.max_parallel, e.when, e.condition) == ([1, 2], 2, When.ALL_DONE, "1 == 1")
    assert (graph.max_parallel, graph.fail_fast, graph.timeout) == (4, True, timedelta(hours=1))
    assert graph.defaults == {"p": 1}
    assert [graph.place_of(name) for name in ("a", "e", "z")] == [0, 4, -1]


@pytest.mark.parametrize("raw", [{}, {"nodes": None}, {"nodes": []}])
def test_a_dag_without_nodes_is_refused_in_these_words(raw: Any) -> None:
    with pytest.raises(InvalidArgument) as refused:
        read_graph(raw)
    assert refused.value.message == "dag must have nodes"


@pytest.mark.parametrize("raw", [None, [], "x", 3, {"nodes": "a"}, {"nodes": {"a": {}}}, {"nodes": [{}] * 20_001}])
def test_what_is_no_dag_is_refused(raw: Any) -> None:
    assert problems(raw)


def test_everything_wrong_is_named_at_once() -> None:
    found = problems(
        dag(
            {"id": "a", "type": 7, "cfg": [], "retry": 3, "when": 4, "map": {"x": 1}},
            {"id": "a"},
            {"id": " "},
            "node",
            {"id": "line\nbreak"},
            {"id": "x" * 129},
            node("b", "nobody", retry={"maxAttempts": 0, "backoff": "soon", "backoffMultiplier": 0.5}),
            node("c", timeout=0, callbackTimeout=-1, onUncertain="maybe", queue="ü", maxParallel=True),
            {"id": "d", "dependsOn": 3, "if": "a >", "retry": {"backoff": "31d"}},
            {"id": "e", "dependsOn": [None], "when": "all_sucess", "map": "{{a.artifact}} x"},
            {"id": "f", "when": "1 == 1", "if": "2 == 2"},
            node("g", type="chain", cfg=dag(node("inner", "nobody"))),
            maxParallel=0,
            failFast="yes",
            timeout=0,
            params=[],
        )
    )
    assert set(found) == {
        "nodes[0].type", "nodes[0].cfg", "nodes[0].retry", "nodes[0].when", "nodes[0].map",
        "nodes[1].id", "nodes[2].id", "nodes[3]", "nodes[4].id", "nodes[5].id",
        "nodes[6].dependsOn", "nodes[6].retry.maxAttempts", "nodes[6].retry.backoff",
        "nodes[6].retry.backoffMultiplier", "nodes[7].timeout", "nodes[7].callbackTimeout", "nodes[7].onUncertain",
        "nodes[7].queue", "nodes[7].maxParallel",
        "nodes[8].dependsOn", "nodes[8].if", "nodes[8].retry.backoff",
        "nodes[9].dependsOn", "nodes[9].when", "nodes[9].map", "nodes[10].when", "nodes[11].cfg.nodes[0].dependsOn",
        "maxParallel", "failFast", "timeout", "params",
    }  # fmt: skip
    assert found["nodes[1].id"] == "'a' is taken by nodes[0]"
    assert "all_success" in found["nodes[9].when"]


def test_a_circle_is_named_in_order() -> None:
    found = problems(dag(node("start"), node("a", "c", "start"), node("b", "a"), node("c", "b"), node("end", "c")))
    assert found == {"nodes": "the nodes depend on each other in a circle: b -> c -> a -> b"}
    assert problems(dag(node("a", "a"))) == {"nodes": "the nodes depend on each other in a circle: a -> a"}


def test_long_chains_and_long_circles_need_no_recursion() -> None:
    line: list[tuple[int, ...]] = [(), *((place,) for place in range(LONG - 1))]
    assert in_order(line) == list(range(LONG))
    assert find_circle(line) == []
    assert sorted(find_circle([(LONG - 1,), *line[1:]])) == list(range(LONG))
    nodes = [node(f"n{i}", *[f"n{i - 1}"][: i or 0], cfg={"x": "{{n0.artifact}}"} if i else {}) for i in range(LONG)]
    assert len(read_graph(dag(*nodes)).steps) == LONG
    few = [node("n0", "n29"), *nodes[1:30]]
    assert problems(dag(*few))["nodes"].endswith("n20 -> … 10 more -> n1")


def test_when_may_be_a_condition_itself() -> None:
    graph = read_graph(dag(node("a"), node("b", "a", when="a.artifact.n > 3"), node("c", "a", when="any_failed")))
    assert [(step.when, step.condition) for step in graph.steps] == [
        (When.ALL_SUCCESS, ""),
        (When.ALL_SUCCESS, "a.artifact.n > 3"),
        (When.ANY_FAILED, ""),
    ]


def test_markers_must_name_what_is_there_by_then() -> None:
    nodes = [
        node("a"),
        node("b", "a"),
        node("c", "b", cfg={"x": ["{{a.artifact.x}} {{params.p}}"]}, map="{{b.artifact}}"),
        node("d", "c", **{"if": "a.artifact and c.artifact.x == 1"}, map=[1], cfg={"i": "{{item}}{{index}}"}),
    ]
    graph = read_graph(dag(*nodes, params={"p": 1}))
    assert [sorted(step.references) for step in graph.steps] == [[], [], ["a", "b"], ["a", "c"]]
    found = problems(
        dag(
            node("a", cfg={"self": "{{a.artifact}}"}),
            node("b", cfg={"x": "{{a.artifact}}"}),
            node("c", "a", **{"if": "nobody.artifact"}),
            node("d", "a", map="{{item}}", cfg={"x": "{{params.p}}"}),
            node("e", cfg={"x": "{{index}}"}),
            node("f", map=[1], **{"if": "item == 1"}),
        )
    )
    assert found == {
        "nodes[0]": "uses the artifact of 'a' but does not depend on it; add it to dependsOn",
        "nodes[1]": "uses the artifact of 'a' but does not depend on it; add it to dependsOn",
        "nodes[2].if": "{{nobody.artifact}}: there is no node 'nobody'",
        "nodes[3].map": "{{item}}: only the cfg of a node with a map can speak of its items",
        "nodes[3].cfg": "{{params.p}}: the chain has no parameter 'p'; declare it with its default under params",
        "nodes[4].cfg": "{{index}}: only the cfg of a node with a map can speak of its items",
        "nodes[5].if": "{{item}}: only the cfg of a node with a map can speak of its items",
    }


def test_a_chain_within_a_chain_has_markers_of_its_own() -> None:
    inner = dag(node("a"), node("b", "a", cfg={"x": "{{a.artifact}} {{params.p}}"}), params={"p": "{{top.artifact.n}}"})
    graph = read_graph(dag(node("top"), node("sub", "top", type="chain", cfg=inner)))
    assert graph.steps[1].references == {"top"}
    filled = graph.steps[1].config_for(Scope({"top": {"n": 3}}, {}))
    assert filled == {**inner, "params": {"p": 3}}
    assert graph.steps[0].config_for(Scope({}, {})) is graph.steps[0].config


def test_chains_are_not_nested_without_end() -> None:
    nested = dag(node("a"))
    for _ in range(5):
        nested = dag(node("a", type="chain", cfg=nested))
    read_graph(nested)
    assert "at most 5 deep" in next(iter(problems(dag(node("a", type="chain", cfg=nested))).values()))


def test_a_dag_that_was_accepted_is_read_the_same_without_looking_into_it() -> None:
    raw = dag(node("a"), node("b", "a", **{"if": "a.artifact.x > 1"}, cfg={"x": "{{a.artifact}}"}), timeout="1m")
    assert read_graph(raw, is_accepted=True) == read_graph(raw)
