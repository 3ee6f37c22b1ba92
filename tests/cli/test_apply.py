"""Jobs from files: what is read, what would be done, and what an operator has changed stays."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ksana.cli.definitions import Definition, read_definitions, read_text
from ksana.cli.planning import Step, marked_tags, plan
from ksana.domain.errors import InvalidArgument
from tests.cli.conftest import Ksana

TIMER = {
    "id": "a1",
    "name": "beat",
    "enabled": True,
    "type": "http",
    "http": {"method": "POST", "url": "http://127.0.0.1:9/b", "headers": {}, "body": "x"},
    "schedule": {"kind": "every", "every": "5m", "start_at": "", "jitter": "0s"},
    "timeout": "10s",
    "max_retries": 3,
    "retry_backoff": "5s",
    "last_run_at": "",
    "next_run_at": "",
    "last_status": "",
    "last_error": "",
}
TASK = {
    "name": "sync",
    "cron_expr": "0 */5 * * * *",
    "timezone": "Asia/Shanghai",
    "target_url": "http://127.0.0.1:9/x",
    "http_method": "POST",
    "retry_policy": {"max_retries": 3, "initial_delay": 5, "strategy": "exponential", "max_delay": 60},
}
DAG = {"nodes": [{"id": "a"}, {"id": "b", "dependsOn": ["a"]}]}


def only(tree: Any, source: str = "file.json") -> dict[str, Any]:
    [found] = read_text(json.dumps(tree), source)
    return found.body


def test_the_files_of_older_schedulers_are_read_unchanged() -> None:
    timer = only({"version": 1, "updated_at": "2026-01-01T00:00:00Z", "jobs": [TIMER]})
    assert timer["target"]["config"]["body"] == "x"
    assert (timer["schedule"]["every"], timer["retry"]["max_attempts"]) == ("5m", 4)
    assert (timer["overlap"]["rule"], timer["misfire"]["rule"]) == ("skip", "skip")
    task = only(TASK)
    assert task["schedule"] == {"kind": "cron", "expr": "0 */5 * * * *", "timezone": "Asia/Shanghai"}
    assert (task["retry"]["max_attempts"], task["retry"]["max_delay"]) == (4, "1m")
    chain = only(DAG, "files/nightly.json")
    assert (chain["name"], chain["target"]) == ("nightly", {"kind": "chain", "config": DAG})
    assert only({"name": "c", "dagJson": json.dumps(DAG)})["target"]["config"] == DAG


def test_yaml_may_hold_many_jobs_and_instants_stay_text() -> None:
    text = "- name: a\n  target: {kind: noop}\n- name: b\n  target: {kind: noop}\n"
    once = "name: c\ntarget: {kind: noop}\nschedule: {kind: once, run_at: 2031-01-01T00:00:00Z}\n"
    found = read_text(f"{text}---\n", "a.yaml") + read_text(once, "b.yaml")
    assert [one.name for one in found] == ["a", "b", "c"]
    assert found[2].body["schedule"]["run_at"] == "2031-01-01T00:00:00Z"


def test_what_is_wrong_is_named_with_its_file(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("name: x\ntarget: {kind: noop}\nretries: 3\n")
    (tmp_path / "b.json").write_text('{"what": 1}')
    (tmp_path / "c.yml").write_text("name: [")
    (tmp_path / "d.json").write_text(json.dumps({"nodes": [{"id": "a", "dependsOn": ["z"]}]}))
    (tmp_path / "notes.txt").write_text("not looked at")
    with pytest.raises(InvalidArgument) as refused:
        read_definitions((str(tmp_path),))
    said = str(refused.value)
    for word in ("a.yaml: retries", "b.json: is no job", "c.yml: is neither YAML nor JSON", "d.json: nodes[0]"):
        assert word in said


def test_names_tell_jobs_apart(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps([{"name": "x", "target": {"kind": "noop"}}] * 2))
    with pytest.raises(InvalidArgument, match="the name 'x' is taken"):
        read_definitions((str(tmp_path),))
    twins = read_text(json.dumps({"jobs": [TIMER, {**TIMER, "id": "a2"}]}), "jobs.json")
    assert [one.name for one in twins] == ["beat (a1)", "beat (a2)"]


def definition(**fields: Any) -> Definition:
    body = {"name": "job", "target": {"kind": "noop"}, "schedule": {"kind": "every", "every": "60s"}, **fields}
    return Definition("job", body, "file.yaml")


def stored(one: Definition, **fields: Any) -> dict[str, Any]:
    """The job that a server makes of a definition, as applied."""
    schedule = {"kind": "every", "every": "1m", "origin_at": "2026-01-01T00:00:00Z", "jitter": "0s", "end_at": None}
    policies = {"retry": {"max_attempts": 1, "strategy": "fixed"}, "timeouts": {"total": "10s"}, "queue": "default"}
    target = {"kind": "noop", "config": {}}
    job = {"id": 1, "version": 2, "name": "job", "tags": [], "target": target, "schedule": schedule, **policies}
    [step] = plan([one], [], "default")
    return {**job, "tags": marked_tags([], job, step, "default"), **fields}


def planned(one: Definition, job: dict[str, Any]) -> Step:
    [step] = plan([one], [job], "default")
    return step


def test_what_is_as_the_file_says_is_left_alone() -> None:
    job = stored(definition())
    assert planned(definition(), job).action == "unchanged"
    said_otherwise = planned(definition(schedule={"kind": "every", "every": "1m"}), job)
    assert (said_otherwise.action, said_otherwise.needs_mark) == ("unchanged", True)


def test_what_the_file_says_anew_is_changed() -> None:
    step = planned(definition(schedule={"kind": "every", "every": "2m"}), stored(definition()))
    assert [tuple(change) for change in step.changes] == [("schedule.every", "1m", "2m")]
    assert step.body == {"schedule": {"kind": "every", "every": "2m"}}
    assert planned(definition(retry={"max_attempts": 3}), stored(definition())).body == {"retry": {"max_attempts": 3}}


def test_a_pause_survives_and_so_does_what_an_operator_changed() -> None:
    paused = stored(definition(), enabled=False)
    assert planned(definition(enabled=True), paused).action == "unchanged"
    overridden = stored(definition(), schedule={"kind": "every", "every": "5m"})
    changed = planned(definition(schedule={"kind": "every", "every": "2m"}, queue="slow"), overridden)
    assert (changed.overridden, changed.body) == (["schedule"], {"queue": "slow"})
    assert planned(definition(), overridden).overridden == ["schedule"]
    tags = marked_tags([], {**overridden, "queue": "slow"}, changed, "default")
    still = planned(
        definition(schedule={"kind": "every", "every": "3m"}), {**overridden, "queue": "slow", "tags": tags}
    )
    assert still.overridden == ["schedule"]
    agreed = planned(definition(schedule={"kind": "every", "every": "5m"}), overridden)
    assert (agreed.overridden, agreed.needs_mark) == ([], True)


def test_only_what_the_same_set_has_made_is_pruned() -> None:
    ours = stored(definition())
    theirs = {**ours, "id": 2, "name": "theirs", "tags": ["applied/other"]}
    somebodys = {**ours, "id": 3, "name": "somebodys", "tags": []}
    steps = plan([], [ours, theirs, somebodys], "default", is_pruning=True)
    assert [(step.action, step.name) for step in steps] == [("delete", "job")]
    assert plan([], [ours], "default") == []


def test_apply_makes_changes_and_deletes_what_files_say(asked: Ksana, tmp_path: Path) -> None:
    files = tmp_path / "files"
    files.mkdir()
    (files / "a.yaml").write_text("name: apply.a\ntarget: {kind: noop}\nschedule: {kind: every, every: 1h}\n")
    (files / "task.json").write_text(json.dumps(TASK))
    (files / "jobs.json").write_text(json.dumps({"version": 1, "jobs": [TIMER]}))
    (files / "nightly.json").write_text(json.dumps(DAG))
    assert asked("jobs", "diff", "-f", "files").code == 1
    assert asked("jobs", "apply", "-f", "files", "--dry-run").out.count("create") == 4
    assert "apply.a" not in asked("jobs", "list").out
    assert asked("jobs", "apply", "-f", "files").code == 0
    assert asked("jobs", "diff", "-f", "files").code == 0
    asked("jobs", "pause", "apply.a")
    asked("jobs", "edit", "apply.a", "--queue", "by.hand")
    (files / "a.yaml").write_text(
        "name: apply.a\ntarget: {kind: noop}\nqueue: by.file\nschedule: {kind: every, every: 2h}\n"
    )
    (files / "task.json").unlink()
    assert asked("jobs", "apply", "-f", "files", "--prune").code == 2
    said = asked("jobs", "apply", "-f", "files", "--prune", "--yes", "--json")
    steps = {step["name"]: step for step in map(json.loads, said.out.splitlines())}
    assert {name: step["action"] for name, step in steps.items()} == {
        "apply.a": "update",
        "beat": "unchanged",
        "nightly": "unchanged",
        "sync": "delete",
    }
    assert steps["apply.a"]["overridden"] == ["queue"]
    job = json.loads(asked("jobs", "show", "apply.a", "--json").out)
    assert (job["enabled"], job["queue"], job["schedule"]["every"]) == (False, "by.hand", "2h")
    assert asked("jobs", "show", "sync").code == 3
    assert asked("jobs", "diff", "-f", "files", "--prune").code == 0


def test_what_is_exported_can_be_applied(asked: Ksana, tmp_path: Path) -> None:
    asked("jobs", "create", "exported", "--target", "echo", "--config", '{"message": "hi"}', "--cron", "0 9 * * *")
    text = asked("jobs", "export", "exported").out
    (tmp_path / "exported.yaml").write_text(text)
    said = asked("jobs", "diff", "-f", "exported.yaml", "--set", "copy", "--json")
    [step] = [json.loads(row) for row in said.out.splitlines()]
    assert [change["path"] for change in step["changes"]] == ["tags"]
