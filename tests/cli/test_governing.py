"""What an operator may set for queues and objects, and who is at work."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import click
import pytest

from ksana import Client
from tests.cli.conftest import Ksana


def value(asked: Ksana, *words: str) -> Any:
    said = asked(*words, "--json")
    assert said.code == 0, said.err
    return json.loads(said.out)


def test_a_queue_is_paused_and_resumed(asked: Ksana) -> None:
    asked("queue", "enqueue", "halted", "1")
    assert asked("queue", "pause", "halted", "--reason", "moving house").out == "halted\tpaused\t\t\tmoving house\n"
    assert "nothing is due" in asked("queue", "pull", "halted").err
    assert value(asked, "queue", "resume", "halted")["paused"] is False
    assert value(asked, "queue", "pull", "halted")["payload"] == 1


def test_a_queue_is_purged_by_whoever_types_its_name(asked: Ksana, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(3):
        asked("queue", "enqueue", "spill", str(number))
    asked("queue", "pull", "spill", "-q")
    plan = asked("queue", "purge", "spill", "--dry-run")
    assert (plan.code, len(plan.out.splitlines())) == (0, 2)
    assert "would purge 2 item(s); nothing was done" in plan.err
    alone = asked("queue", "purge", "spill")
    assert alone.code == 2
    assert "Purge 2 item(s) of spill?" in alone.err

    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    answers = iter(["spil", "spill"])
    monkeypatch.setattr(click.termui, "visible_prompt_func", lambda text: next(answers))
    wrong = asked("queue", "purge", "spill")
    assert wrong.code == 1
    assert "nothing was done" in wrong.err
    done = asked("queue", "purge", "spill", "--reason", "wrong address", "--json")
    assert (done.code, json.loads(done.out)["done"]) == (0, 2)
    [held] = asked("queue", "items", "spill", "--status", "running", "-q").out.split()
    assert value(asked, "queue", "purge", "spill", "--held", "--dead", "--yes")["done"] == 1
    assert asked("queue", "ack", held).code == 4
    assert "no item fits" in asked("queue", "purge", "spill", "--yes").err


def test_limits_are_set_shown_and_lifted(asked: Ksana) -> None:
    set_to = value(asked, "queue", "limit", "narrow", "--concurrency", "1", "--rate", "10/2s", "--key-rate", "3")
    assert (set_to["concurrency"], set_to["rate"]) == (1, {"count": 10, "per_sec": 2.0})
    assert set_to["key_rate"] == {"count": 3, "per_sec": 1.0}
    assert asked("queue", "limit", "narrow").out == "narrow\topen\t1 at once, 10 in 2.0 s\tof each key 3 in 1.0 s\t\n"
    for number in range(2):
        asked("queue", "enqueue", "narrow", str(number))
    assert len(asked("queue", "pull", "narrow", "--limit", "5", "-q").out.split()) == 1
    lifted = value(asked, "queue", "limit", "narrow", "--concurrency", "none")
    assert (lifted["concurrency"], lifted["rate"]["count"]) == (None, 10)
    for words, field in (
        (("--concurrency", "0"), "--concurrency"),
        (("--key-concurrency", "few"), "--key-concurrency"),
        (("--rate", "often"), "--rate"),
    ):
        said = asked("queue", "limit", "narrow", *words)
        assert said.code == 2
        assert field in said.err


def test_objects_are_listed_and_their_gates_set(asked: Ksana) -> None:
    assert asked("queue", "gate", "memory", "mem_1").code == 3
    asked("api", "PUT", "/scheduler/objects/memory/mem_1", "-d", '{"risk_tier": "high"}')
    assert value(asked, "queue", "gate", "memory", "mem_1")["held_back"] is True
    opened = asked("queue", "gate", "memory", "mem_1", "--persona", "pass", "--cognition", "limit", "--reason", "ok")
    assert opened.out == "memory\tmem_1\thigh\tunassessed\tcognition limit, persona pass\t\t\n"
    asked("api", "PUT", "/scheduler/objects/cognition/cog_1", "-d", '{"epistemic_state": "uncertain"}')
    assert asked("queue", "objects", "-q").out.split() == ["cognition/cog_1", "memory/mem_1"]
    assert asked("queue", "objects", "--risk", "high", "-q").out == "memory/mem_1\n"
    assert asked("queue", "objects", "--type", "cognition", "--certainty", "refuted").out == ""
    assert asked("queue", "gate", "memory", "mem_1", "--persona", "ajar").code == 2


def test_nodes_and_those_who_hold_items_are_listed(asked: Ksana) -> None:
    asked("queue", "enqueue", "held/here", "1")
    asked("queue", "pull", "held/here", "--worker", "somebody")
    found = [json.loads(line) for line in asked("workers", "list", "--json").out.splitlines()]
    [node] = [one for one in found if one["kind"] == "node"]
    assert (node["state"], node["queue"]) == ("alive", None)
    [holder] = [one for one in found if one["name"] == "somebody"]
    assert (holder["kind"], holder["queue"], holder["items"]) == ("worker", "held/here", 1)
    assert holder["until"] is not None


def test_what_dead_letters_of_a_queue_died_of_is_shown_however_much_died_elsewhere(asked: Ksana) -> None:
    with Client(os.environ["KSANA_URL"]) as k:
        for queue, count in (("graves", 60), ("grave", 1)):
            for number in range(count):
                k.queue.enqueue(queue, number, max_attempts=1)
            for item in k.queue.pull(queue, "w", limit=count):
                k.queue.fail(item, f"{queue} {item.payload}")
    assert value(asked, "queue", "dead", "grave", "--by-error")["error"] == "grave 0"
    assert len(asked("queue", "dead", "graves", "--by-error", "--limit", "100").out.splitlines()) == 60


def test_a_node_drains_and_works_again(asked: Ksana) -> None:
    node = json.loads(asked("workers", "list", "--json").out.splitlines()[0])
    told = value(asked, "workers", "drain", node["name"], "--reason", "new kernel")
    assert told["draining"] is True
    listed = json.loads(asked("workers", "list", "--json").out.splitlines()[0])
    assert (listed["state"], listed["items"]) == ("drained", 0)
    assert value(asked, "workers", "drain", str(told["id"]), "--undo")["draining"] is False
    assert asked("workers", "drain", "nobody").code == 3
