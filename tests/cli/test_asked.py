"""Commands that ask a server: jobs and runs, by id and by name, with exit codes that tell what came of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.cli.conftest import Ksana, Said


def made(asked: Ksana, name: str, *words: str) -> dict[str, Any]:
    said = asked("jobs", "create", name, *(words or ("--target", "noop")), "--json")
    assert said.code == 0, said.err
    job: dict[str, Any] = json.loads(said.out)
    return job


def documents(said: Said) -> list[dict[str, Any]]:
    return [json.loads(line) for line in said.out.splitlines()]


def test_a_job_is_made_of_options(asked: Ksana) -> None:
    words = ("--http", "POST http://127.0.0.1:9/x", "--header", "X-A: b", "--body", '{"n": 1}', "--cron", "0 9 * * 1-5")
    more = ("--timezone", "Asia/Shanghai", "--retries", "3", "--backoff", "5s..1m", "--timeout", "20s", "--tag", "mine")
    job = made(asked, "options", *words, *more)
    assert job["target"]["config"]["json"] == {"n": 1}
    assert job["target"]["config"]["headers"] == {"X-A": "b"}
    assert (job["schedule"]["expr"], job["schedule"]["timezone"]) == ("0 9 * * 1-5", "Asia/Shanghai")
    assert (job["retry"]["max_attempts"], job["retry"]["strategy"]) == (4, "exponential")
    assert (job["retry"]["max_delay"], job["timeouts"]["total"], job["tags"]) == ("1m", "20s", ["mine"])
    shown = asked("jobs", "show", "options", "--lang", "zh").out
    assert "words\t每周一至周五 09:00（上海时间）\n" in shown
    only = asked("jobs", "create", "nothing", "--target", "noop", "--every", "5m", "--dry-run").out
    assert json.loads(only) == {
        "name": "nothing",
        "target": {"kind": "noop", "config": {}},
        "schedule": {"kind": "every", "every": "5m"},
    }
    assert asked("jobs", "show", "nothing").code == 3


def test_a_job_is_found_by_its_name_and_by_its_id(asked: Ksana) -> None:
    job = made(asked, "found.by.name")
    assert json.loads(asked("jobs", "show", str(job["id"]), "--json").out)["name"] == "found.by.name"
    assert json.loads(asked("jobs", "show", "found.by.name", "--json").out)["id"] == job["id"]
    missing = asked("jobs", "show", "found.by.nam")
    assert (missing.code, missing.out) == (3, "")
    assert "did you mean 'found.by.name'?" in missing.err


def test_two_jobs_of_one_name_are_told_apart_by_id(asked: Ksana) -> None:
    first, second = made(asked, "twin"), made(asked, "twin")
    said = asked("jobs", "show", "twin")
    assert said.code == 2
    assert f"{first['id']} (v2), {second['id']} (v2)" in said.err


def test_the_verdict_of_a_run_is_that_of_the_command(asked: Ksana) -> None:
    made(asked, "well", "--target", "echo", "--config", '{"message": "hi"}')
    made(asked, "badly", "--target", "fail", "--retries", "0")
    made(asked, "slowly", "--target", "sleep", "--config", '{"for": "1h"}', "--timeout", "2h")
    well = asked("jobs", "run", "well", "--wait", "--json")
    assert (well.code, json.loads(well.out)["state"]) == (0, "SUCCESS")
    badly = asked("jobs", "run", "badly", "--wait", "30s")
    assert badly.code == 1
    assert "failed as configured" in badly.out
    slowly = asked("jobs", "run", "slowly", "--wait", "10ms", "--json")
    assert slowly.code == 7
    assert json.loads(slowly.out)["code"] == "STILL_RUNNING"
    [run] = asked("runs", "list", "--job", "slowly", "-q").out.split()
    assert asked("runs", "cancel", run).code == 0
    assert asked("runs", "cancel", run).code == 4


def test_pausing_many_leaves_the_others(asked: Ksana) -> None:
    for name in ("many.a", "many.b"):
        made(asked, name, "--target", "noop", "--every", "1h", "--tag", "many")
    plan = asked("jobs", "pause", "--tag", "many", "--dry-run")
    assert len(plan.out.splitlines()) == 2
    assert "nothing was done" in plan.err
    assert all(job["enabled"] for job in documents(asked("jobs", "list", "--tag", "many", "--json")))
    assert asked("jobs", "pause", "--tag", "many").out.startswith("pause\tdone\t2 done\t0 failed\t")
    assert asked("jobs", "pause", "many.a", "many.b").out.count("paused") == 2
    assert asked("jobs", "list", "--tag", "many", "--enabled").out == ""
    assert asked("jobs", "resume", "many.a").code == 0
    [job] = documents(asked("jobs", "list", "--tag", "many", "--paused", "--json"))
    assert job["name"] == "many.b"


def test_of_many_that_fail_in_part_the_exit_code_says_so(asked: Ksana) -> None:
    made(asked, "partly", "--target", "fail", "--retries", "0")
    made(asked, "partly.well")
    bad = json.loads(asked("jobs", "run", "partly", "--wait", "--json").out)["id"]
    good = json.loads(asked("jobs", "run", "partly.well", "--wait", "--json").out)["id"]
    said = asked("runs", "retry", str(bad), str(good))
    assert said.code == 8
    assert f"run {good}:" in said.err
    assert "1 of 2 could not be done" in said.err


def test_what_deletes_wants_to_be_told_twice(asked: Ksana) -> None:
    job = made(asked, "precious")
    refused = asked("jobs", "delete", "precious")
    assert refused.code == 2
    assert "--yes" in refused.err
    assert "nothing was done" in asked("jobs", "delete", "precious", "--dry-run").err
    assert asked("jobs", "delete", "precious", "--yes", "-q").out == f"{job['id']}\n"
    assert asked("jobs", "delete", "precious", "--yes").code == 3


def test_a_run_shows_its_attempts_and_is_compared_with_a_success(asked: Ksana) -> None:
    made(asked, "compared", "--target", "echo", "--config", '{"message": "one"}')
    first = json.loads(asked("jobs", "run", "compared", "--wait", "--json").out)["id"]
    asked("jobs", "edit", "compared", "--target", "echo", "--config", '{"message": "two"}')
    second = json.loads(asked("jobs", "run", "compared", "--wait", "--input", "[1]", "--json").out)["id"]
    shown = json.loads(asked("runs", "show", str(second), "--json").out)
    assert (shown["input"], [attempt["result"] for attempt in shown["attempts"]]) == ([1], ["two"])
    compared = asked("runs", "diff", str(second), str(first), "--json")
    assert compared.code == 1
    assert any(change["path"].startswith("input") for change in json.loads(compared.out)["changes"])
    assert asked("runs", "diff", str(first)).code == 3


def test_a_run_that_failed_is_completed_by_hand(asked: Ksana) -> None:
    made(asked, "by.hand", "--target", "fail", "--retries", "0")
    run = json.loads(asked("jobs", "run", "by.hand", "--wait", "--json").out)["id"]
    assert asked("runs", "tail", str(run)).code == 1
    done = asked("runs", "complete", str(run), "--reason", "seen to", "--json")
    assert (done.code, json.loads(done.out)["state"]) == (0, "SUCCESS")
    assert asked("runs", "tail", str(run)).code == 0


def test_changes_go_by_options_by_files_and_by_the_version_read(asked: Ksana, tmp_path: Path) -> None:
    made(asked, "changed", "--target", "noop", "--every", "1h")
    (tmp_path / "patch.yaml").write_text("retry: {max_attempts: 5}\n")
    by_file = json.loads(asked("jobs", "edit", "changed", "-f", "patch.yaml", "--json").out)
    assert (by_file["retry"]["max_attempts"], by_file["schedule"]["every"]) == (5, "1h")
    unscheduled = json.loads(asked("jobs", "edit", "changed", "--unschedule", "--json").out)
    assert unscheduled["schedule"] is None
    copy = json.loads(asked("jobs", "duplicate", "changed", "--json").out)
    assert (copy["name"], copy["retry"]["max_attempts"]) == ("changed copy", 5)


def test_next_fires_and_the_fire_log_are_shown(asked: Ksana) -> None:
    made(asked, "planned", "--target", "noop", "--cron", "0 0 1 1 *", "--timezone", "Europe/Berlin")
    fires = documents(asked("jobs", "next", "planned", "-n", "2", "--json"))
    assert [fire["local"][4:] for fire in fires] == ["-01-01T00:00:00+01:00"] * 2
    assert "\tplanned" in asked("jobs", "next", "-n", "100").out
    assert asked("jobs", "fires", "planned").code == 0
    made(asked, "unplanned")
    assert asked("jobs", "next", "unplanned").code == 2


def test_slots_of_the_past_are_filled_in_once(asked: Ksana) -> None:
    made(asked, "filled", "--target", "noop", "--cron", "0 * * * *")
    words = ("jobs", "backfill", "filled", "--since", "2026-01-01T00:00:00Z", "--until", "2026-01-01T02:30:00Z")
    assert len(asked(*words, "--dry-run").out.splitlines()) == 3
    assert asked(*words).code == 2
    assert len(asked(*words, "--yes").out.splitlines()) == 3
    assert "made 0 run(s)" in asked(*words, "--yes").err


def test_tail_shows_runs_as_they_come_and_only_those_asked_for(asked: Ksana) -> None:
    made(asked, "ticking.well", "--target", "noop", "--every", "100ms", "--tag", "ticking")
    made(asked, "ticking.badly", "--target", "fail", "--retries", "0", "--every", "100ms", "--tag", "ticking")
    of_one = documents(asked("tail", "ticking.well", "--state", "ok", "-n", "2", "--json"))
    assert [line["job_name"] for line in of_one] == ["ticking.well"] * 2
    assert len({line["id"] for line in of_one}) == 2
    bad = documents(asked("tail", "--tag", "ticking", "--state", "bad", "-n", "4", "--json"))
    assert {(line["job_name"], line["state"]) for line in bad} == {("ticking.badly", "FAILED")}
    asked("jobs", "delete", "--tag", "ticking", "--yes")


def test_anything_may_be_asked_and_a_refusal_is_printed(asked: Ksana) -> None:
    answer = asked("api", "POST", "/api/v2/jobs", "-d", '{"name": "raw", "target": {"kind": "noop"}}')
    assert json.loads(answer.out)["name"] == "raw"
    refused = asked("api", "POST", "api/v2/jobs", "-d", '{"name": ""}', "--json")
    assert refused.code == 2
    assert "target" in [problem["field"] for problem in json.loads(refused.out)["problems"]]
    assert asked("health").out == "ok\n"
    assert json.loads(asked("health", "--ready", "--json").out)["ready"] is True
    assert asked("health", "--url", "http://127.0.0.1:1").code == 5


def test_a_job_is_paused_until_an_instant_for_a_reason(asked: Ksana) -> None:
    made(asked, "resting", "--target", "noop", "--every", "1h")
    shown = asked(
        "jobs", "pause", "resting", "--until", "2999-01-01T00:00:00Z", "--reason", "no need", "--tz", "UTC"
    ).out
    assert "paused until 2999-01-01 00:00:00" in shown
    fields = asked("jobs", "show", "resting", "--tz", "UTC").out
    assert "until\t2999-01-01 00:00:00" in fields
    assert "reason\tno need\n" in fields
    assert asked("jobs", "pause", "resting", "--until", "1999-01-01T00:00:00Z").code == 2
    listed = json.loads(asked("jobs", "list", "--name", "resting", "--json").out)
    assert listed["paused_until"] == "2999-01-01T00:00:00Z"
    assert json.loads(asked("jobs", "resume", "resting", "--json").out)["paused_until"] is None
