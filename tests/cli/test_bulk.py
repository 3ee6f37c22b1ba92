"""Verbs over filters: the server does it, the command follows, and says what could not be done."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest

from ksana.cli.bulk import Filtered
from ksana.cli.output import Out
from ksana.client import Client
from tests.cli.conftest import Ksana


def value(asked: Ksana, *words: str) -> Any:
    said = asked(*words, "--json")
    assert said.code == 0, said.err
    return json.loads(said.out)


def make(asked: Ksana, tag: str, *names: str, target: str = "noop", config: str = "{}") -> None:
    for name in names:
        value(asked, "jobs", "create", name, "--target", target, "--config", config, "--tag", tag, "--retries", "0")


def states(asked: Ksana, tag: str) -> list[str]:
    found = asked("runs", "list", "--tag", tag, "--json").out.splitlines()
    return sorted(json.loads(line)["state"] for line in found)


def test_many_are_run_tried_again_and_cancelled_by_a_filter(asked: Ksana) -> None:
    make(asked, "sleepy", "sleepy.a", "sleepy.b", target="sleep", config='{"for": "1h"}')
    refused = asked("jobs", "run", "--tag", "sleepy")
    assert refused.code == 2
    assert "Run 2 job(s)?" in refused.err
    assert states(asked, "sleepy") == []
    done = value(asked, "jobs", "run", "--tag", "sleepy", "--yes")
    assert (done["action"], done["state"], done["total"], done["done"]) == ("run", "done", 2, 2)
    assert len(states(asked, "sleepy")) == 2
    plan = value(asked, "runs", "cancel", "--tag", "sleepy", "--since", "24h", "--dry-run")
    assert (plan["id"], plan["total"], {one["name"] for one in plan["sample"]}) == (None, 2, {"sleepy.a", "sleepy.b"})
    assert asked("runs", "cancel", "--tag", "sleepy").code == 2
    assert asked("runs", "cancel", "--tag", "sleepy", "--yes").code == 0
    assert states(asked, "sleepy") == ["CANCELED", "CANCELED"]
    assert "no run fits" in asked("runs", "cancel", "--tag", "sleepy", "--yes").err


def test_only_those_are_switched_for_which_it_changes_anything(asked: Ksana) -> None:
    make(asked, "half", "half.a", "half.b")
    assert asked("jobs", "pause", "half.a").code == 0
    assert value(asked, "jobs", "pause", "--tag", "half", "--dry-run")["sample"][0]["name"] == "half.b"
    assert value(asked, "jobs", "resume", "--tag", "half")["total"] == 1
    assert value(asked, "jobs", "pause", "--tag", "half")["total"] == 2


def test_what_could_not_be_done_is_named_and_told_by_the_exit_code(asked: Ksana) -> None:
    make(asked, "mixed", "mixed.well")
    make(asked, "mixed", "mixed.badly", target="fail")
    good = value(asked, "jobs", "run", "mixed.well", "--wait")["id"]
    assert asked("jobs", "run", "mixed.badly", "--wait").code == 1
    said = asked("runs", "retry", "--tag", "mixed", "--state", "ended")
    assert said.code == 8
    assert said.out.startswith("retry\tdone\t1 done\t1 failed\t")
    assert f"run {good}: " in said.err
    assert "1 of 2 could not be done" in said.err


def test_a_plan_shows_some_and_says_that_there_are_more(asked: Ksana) -> None:
    make(asked, "dozen", *(f"dozen.{number}" for number in range(12)))
    plan = asked("jobs", "delete", "--tag", "dozen", "--dry-run", "-q")
    assert (plan.code, len(plan.out.splitlines())) == (0, 10)
    assert "the first 10" in plan.err
    assert "would delete 12 job(s)" in asked("jobs", "delete", "--tag", "dozen", "--dry-run").err
    assert asked("jobs", "delete", "--tag", "dozen", "--yes").code == 0
    assert asked("jobs", "list", "--tag", "dozen").out == ""


def test_jobs_are_run_by_name_one_after_the_other(asked: Ksana) -> None:
    make(asked, "named", "named.a", "named.b")
    assert len(asked("jobs", "run", "named.a", "named.b").out.splitlines()) == 2
    assert "would run 1 job(s)" in asked("jobs", "run", "named.a", "--dry-run").err
    for words in (
        ("jobs", "run"),
        ("jobs", "run", "named.a", "--tag", "named"),
        ("jobs", "run", "named.a", "named.b", "--wait"),
        ("jobs", "run", "--tag", "named", "--wait"),
        ("jobs", "run", "--tag", "named", "--input", "{}"),
        ("runs", "retry", "--tag", "named", "--wait"),
    ):
        assert asked(*words).code == 2, words


def test_a_bar_is_drawn_for_whoever_watches(asked: Ksana, monkeypatch: pytest.MonkeyPatch) -> None:
    make(asked, "watched", *(f"watched.{number}" for number in range(5)))
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert "5/5" in asked("jobs", "pause", "--tag", "watched").err


def test_who_goes_away_calls_it_off(asked: Ksana, shared_url: str, capsys: pytest.CaptureFixture[str]) -> None:
    make(asked, "left", "left.a")

    def leave(seconds: float) -> None:
        raise KeyboardInterrupt

    with Client(shared_url) as server:
        many = Filtered(server, Out(), "pause", "job", {"tag": "left"})
        with pytest.raises(KeyboardInterrupt):
            many.carry_out(leave)
        page = server.ask("GET", "/api/v2/operations", query={"page_size": 1})
    assert page["items"][0]["state"] != "running"
    assert "called off after" in capsys.readouterr().err
