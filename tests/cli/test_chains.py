"""`ksana chains` and `ksana queue`: graphs, their nodes, and the work of a worker by hand."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from ksana.cli.boxes import as_boxes
from ksana.cli.drawing import Box, as_dot, as_list, as_mermaid
from tests.cli.conftest import Ksana
from tests.kit.processes import DEADLINE

DAG = {
    "params": {"day": "today"},
    "nodes": [
        {"id": "pull", "type": "print", "cfg": {"day": "{{params.day}}"}},
        {"id": "clean", "dependsOn": ["pull"]},
        {"id": "gate", "type": "wait", "dependsOn": ["clean"]},
        {"id": "mail", "dependsOn": ["gate"]},
    ],
}


def value(asked: Ksana, *words: str) -> Any:
    said = asked(*words, "--json")
    assert said.code == 0, said.err
    return json.loads(said.out)


def until_waiting(asked: Ksana, run: str) -> None:
    """Look until the gate waits for a person; the way there and back is pause enough."""
    deadline = time.monotonic() + DEADLINE
    while "CALLBACK_PENDING" not in (seen := asked("api", "GET", f"/api/v2/runs/{run}/steps").out):
        assert time.monotonic() < deadline, seen


def test_a_graph_is_drawn_by_layers() -> None:
    boxes = [Box("a", "noop", ()), Box("b", "noop", (0,)), Box("c", "http", (0,)), Box("d", "noop", (1, 2), "✓")]
    assert as_list(boxes) == [
        "1 ── a (noop)",
        "2 ┬─ b (noop)    ◀─ a",
        "  └─ c (http)    ◀─ a",
        "3 ── ✓ d (noop)  ◀─ b, c",
    ]
    assert as_mermaid(boxes[:2]) == ["flowchart LR", '  n0["a (noop)"]', '  n1["b (noop)"]', "  n0 --> n1"]
    assert "  n1 -> n3;" in as_dot(boxes)
    assert as_list([]) == []


def drawn(*nodes: str) -> str | None:
    """The picture of nodes written as `name` or `name: needs`."""
    split = [[part.strip() for part in node.partition(":")[::2]] for node in nodes]
    places = {name: place for place, (name, _) in enumerate(split)}
    boxes = [Box(name, "noop", tuple(places[need] for need in needs.split())) for name, needs in split]
    picture = as_boxes(boxes)
    return None if picture is None else "\n".join(picture)


def test_a_small_chain_is_drawn_as_boxes() -> None:
    assert (
        drawn("pull", "dedupe: pull", "清理: pull", "load: dedupe 清理")
        == """\
                    ┌───────────────┐
                 ┌─▶│ dedupe (noop) │──┐
┌─────────────┐  │  └───────────────┘  │  ┌─────────────┐
│ pull (noop) │──┤                     ├─▶│ load (noop) │
└─────────────┘  │  ┌───────────────┐  │  └─────────────┘
                 └─▶│ 清理 (noop)   │──┘
                    └───────────────┘"""
    )


def test_a_line_passes_by_the_boxes_between() -> None:
    assert (
        drawn("a", "b: a", "c: b a")
        == """\
                 ┌──────────┐
              ┌─▶│ b (noop) │──┐
┌──────────┐  │  └──────────┘  │  ┌──────────┐
│ a (noop) │──┤                ├─▶│ c (noop) │
└──────────┘  │                │  └──────────┘
              └────────────────┘"""
    )


def test_what_could_be_misread_is_not_drawn_as_boxes() -> None:
    assert drawn("a", "b", "c: a b", "d: a b") is not None
    assert drawn("a", "b", "c: a", "d: a b") is None
    assert drawn(*map(str, range(41))) is None


def test_two_chains_of_one_file_keep_their_own_lines(ksana: Ksana, tmp_path: Path) -> None:
    job = {
        "name": "one",
        "target": {"kind": "chain", "config": {"nodes": [{"id": "a"}, {"id": "b", "dependsOn": ["a"]}]}},
    }
    both = [job, {**job, "name": "other"}]
    (tmp_path / "both.json").write_text(json.dumps(both))
    assert ksana("chains", "draw", "both.json", "--as", "list").out.count("◀─ a") == 2
    assert ksana("chains", "draw", "both.json", "--as", "mermaid").out.splitlines()[-1] == "  n2 --> n3"


def test_a_chain_in_a_file_is_checked_and_drawn_without_a_server(
    ksana: Ksana, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "nightly.json").write_text(json.dumps(DAG))
    (tmp_path / "circle.json").write_text(
        json.dumps({"nodes": [{"id": "a", "dependsOn": ["b"]}, {"id": "b", "dependsOn": ["a"]}]})
    )
    (tmp_path / "job.yaml").write_text("name: x\ntarget: {kind: noop}\n")
    assert ksana("chains", "validate", "nightly.json").out == "nightly\t4 nodes\n"
    circle = ksana("chains", "validate", "circle.json")
    assert circle.code == 2
    assert "in a circle: a -> b -> a" in circle.err or "in a circle: b -> a -> b" in circle.err
    assert "has no chain" in ksana("chains", "validate", "job.yaml").err
    assert ksana("chains", "draw", "nightly.json", "--as", "list").out.splitlines()[0] == "1 ── pull (print)"
    assert "│ pull (print) │────▶│ clean (noop) │" in ksana("chains", "draw", "nightly.json").out
    monkeypatch.setenv("COLUMNS", "40")
    assert ksana("chains", "draw", "nightly.json").out.splitlines()[0] == "1 ── pull (print)"
    assert "│ pull (print) │" in ksana("chains", "draw", "nightly.json", "--as", "boxes").out
    assert ksana("chains", "draw", "nightly.json", "--as", "mermaid").out.startswith("flowchart LR\n")


def test_a_chain_is_started_stopped_and_helped_by_hand(asked: Ksana, tmp_path: Path) -> None:
    (tmp_path / "nightly.json").write_text(json.dumps(DAG))
    assert asked("jobs", "apply", "-f", "nightly.json").code == 0
    run = str(value(asked, "chains", "start", "nightly", "--params", '{"day": "monday"}')["id"])
    assert asked("chains", "start", "nightly", "--wait", "10ms").code == 7
    assert asked("chains", "stop", run).code == 2
    until_waiting(asked, run)
    assert value(asked, "chains", "stop", run, "--yes", "--wait")["state"] == "CANCELED"
    assert "[CANCELED] gate (wait)" in asked("chains", "draw", "nightly", "--run", run).out
    # How far it has come by the time it is shown depends on how busy the machine is.
    assert value(asked, "chains", "retry-node", run, "gate")["state"] != "CANCELED"
    until_waiting(asked, run)
    done = value(asked, "chains", "complete-node", run, "gate", "--artifact", '{"ok": 1}', "--reason", "looked at it")
    assert done["state"] == "SUCCESS"
    assert asked("runs", "tail", run).code == 0
    steps = {step["id"]: step for step in value(asked, "chains", "show", "nightly", "--run", run)["steps"]}
    assert steps["pull"]["artifact"] == {"day": "monday"}
    assert steps["gate"]["artifact"] == {"ok": 1}
    assert "nightly" in asked("chains", "list").out
    asked("jobs", "create", "no.chain", "--target", "noop")
    assert asked("chains", "start", "no.chain").code == 3


def test_an_item_goes_through_a_queue_by_hand(asked: Ksana) -> None:
    item = value(asked, "queue", "enqueue", "mail", '{"to": "a"}', "--max-attempts", "1")
    pulled = value(asked, "queue", "pull", "mail", "--worker", "me")
    assert (pulled["job_id"], pulled["worker_id"]) == (item["job_id"], "me")
    assert "nothing is due" in asked("queue", "pull", "mail").err
    stale = asked("queue", "ack", item["job_id"], "--lease-token", "1.99")
    assert stale.code == 4
    failed = value(asked, "queue", "fail", item["job_id"], "no such address", "--lease-token", pulled["lease_token"])
    assert failed["status"] == "dead_letter"
    assert "no such address" in asked("queue", "dead", "mail").out
    assert value(asked, "queue", "dead", "--by-error")["count"] == 1
    [queue] = value(asked, "queue", "stats")["queues"]
    assert (queue["queue"], queue["dead_letters"]) == ("mail", 1)
    assert asked("queue", "redrive").code == 2
    assert "would put 1 back" in asked("queue", "redrive", "--queue", "mail", "--dry-run").err
    assert asked("queue", "redrive", "--queue", "mail").code == 2
    assert "put 1 back" in asked("queue", "redrive", "--queue", "mail", "--yes").err
    again = value(asked, "queue", "pull", "mail")
    done = value(asked, "queue", "ack", item["job_id"], "--lease-token", again["lease_token"], "--output", "[1]")
    assert (done["status"], value(asked, "queue", "items", "mail")["status"]) == ("succeeded", "succeeded")
    assert asked("queue", "redrive", item["job_id"], "--yes").code == 8


def test_a_small_load_is_measured_and_leaves_nothing_behind(asked: Ksana) -> None:
    figures = value(asked, "bench", "--jobs", "2", "--rate", "20", "--for", "300ms")
    assert (figures["runs"], figures["succeeded"], figures["failed"]) == (6, 6, 0)
    assert figures["runs_per_second"] == 20.0
    assert 0 <= figures["late_p50_ms"] <= figures["late_max_ms"]
    assert "bench-" not in asked("jobs", "list").out
    assert asked("bench", "--jobs", "1", "--rate", "1000").code == 2
