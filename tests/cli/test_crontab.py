"""Reading crontabs and curl commands, and making jobs of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ksana.cli.crontab import Line, read_crontab
from ksana.cli.curl import read_curl
from ksana.domain.errors import InvalidArgument
from tests.cli.conftest import Ksana

CRONTAB = """\
SHELL=/bin/bash
CRON_TZ = "Asia/Shanghai"
HOOK='https://hooks.example.com/a'

# nightly report
0 2 * * * curl -fsS -X POST -H "Content-Type: application/json" -d '{"day": "today"}' $HOOK >/dev/null 2>&1
*/5 * * * * /usr/bin/curl -s https://example.com/ping
@daily /usr/local/bin/backup.sh --all
"""


def line(text: str, **words: Any) -> Line:
    [found] = read_crontab(text, timezone="UTC", **words)
    return found


def test_curl_lines_become_jobs_and_others_say_what_to_do() -> None:
    report, ping, backup = read_crontab(CRONTAB, timezone="UTC")
    assert report.body == {
        "name": "nightly-report",
        "description": "nightly report",
        "target": {
            "kind": "http",
            "config": {
                "method": "POST",
                "url": "https://hooks.example.com/a",
                "headers": {"Content-Type": "application/json"},
                "json": {"day": "today"},
            },
        },
        "schedule": {"kind": "cron", "expr": "0 2 * * *", "timezone": "Asia/Shanghai"},
    }
    assert report.notes == ("its output goes to the run instead of a file",)
    assert (ping.name, ping.body["target"]["config"]["method"]) == ("example.com-ping", "GET")
    assert (backup.number, backup.refused) == (8, "/usr/local/bin/backup.sh is a program, and Ksana starts none")
    assert "--url-map '/usr/local/bin/backup.sh=POST https://…'" in backup.advice


def test_a_map_gives_a_program_an_address() -> None:
    mapped = line("@daily /opt/backup.sh", url_map={"backup.sh": "PUT https://ops.example.com/backup"})
    assert mapped.body["target"]["config"] == {"method": "PUT", "url": "https://ops.example.com/backup"}
    assert mapped.body["schedule"]["expr"] == "@daily"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("@reboot curl https://a", "@reboot is no time"),
        ("@often curl https://a", "@often is none of"),
        ("* * * * curl https://a", "day-of-week"),
        ("61 * * * * curl https://a", "minute"),
        ("0 0 30 2 * curl https://a", "never fires"),
        ("0 1 * * *", "expected five fields and a command"),
        ("0 1 * * * curl https://a | grep ok", "goes on with '|'"),
        ("0 1 * * * curl https://a/$TOKEN", "$TOKEN is not set in the crontab"),
        ("0 1 * * * curl https://a/$(date)", "made by another command"),
        ("0 1 * * * curl -k https://a", "the option -k has no counterpart"),
        ("0 1 * * * curl -d @file https://a", "sends the file file"),
        ("0 1 * * * curl 'https://a", "quotes do not close"),
        ("0 1 * * * curl https://a https://b", "names two addresses"),
    ],
)
def test_a_line_that_cannot_be_a_job_says_why(text: str, why: str) -> None:
    assert why in line(text).refused


@pytest.mark.parametrize("space", [" ", "\t", "  \t "])
def test_a_system_crontab_has_users_and_a_percent_ends_the_command(space: str) -> None:
    fields = ["17 * * * *", "root", "curl https://a.example.com/x\\%20y%some input"]
    found = line(space.join(fields), has_users=True)
    assert found.body["target"]["config"]["url"] == "https://a.example.com/x%20y"
    assert found.notes == (
        "it ran as root; requests are made by the server",
        "what followed % was its input and is left behind",
    )


def test_lines_that_call_the_same_get_names_of_their_own() -> None:
    lines = read_crontab("0 1 * * * curl https://a/x\n0 2 * * * curl https://a/x\n", timezone="UTC")
    assert [one.name for one in lines] == ["a-x", "a-x-2"]


def test_the_options_of_curl_are_taken_over() -> None:
    request = read_curl(
        "curl -sSfXPUT -u me:pw -A agent -m 30 --connect-timeout 5 --retry=2 --retry-delay 7 -d a=1 -d b=2 h/x"
    )
    assert request.config == {
        "method": "PUT",
        "url": "http://h/x",
        "body": "a=1&b=2",
        "headers": {
            "Authorization": "Basic bWU6cHc=",
            "User-Agent": "agent",
            "Content-Type": "application/x-www-form-urlencoded",
        },
    }
    assert request.timeouts == {"total": "30s", "connect": "5s"}
    assert request.retry == {"max_attempts": 3, "initial_delay": "7s"}
    assert read_curl("curl --json '{\"a\": 1}' https://a").config["json"] == {"a": 1}
    assert read_curl("curl -G --data-urlencode 'q=a b' https://a").config["url"] == "https://a?q=a%20b"
    with pytest.raises(InvalidArgument, match="followed by nothing"):
        read_curl("curl https://a -H")


def test_a_dry_run_needs_no_server(ksana: Ksana, tmp_path: Path) -> None:
    (tmp_path / "crontab").write_text(CRONTAB)
    said = ksana("import", "crontab", "crontab", "--dry-run")
    assert said.code == 1
    assert said.out.splitlines() == [
        "nightly-report\t0 2 * * * (Asia/Shanghai)\tPOST https://hooks.example.com/a",
        "example.com-ping\t*/5 * * * * (Asia/Shanghai)\tGET https://example.com/ping",
    ]
    assert "line 8: /usr/local/bin/backup.sh is a program" in said.err


def test_jobs_are_made_once(asked: Ksana, tmp_path: Path) -> None:
    (tmp_path / "crontab").write_text(CRONTAB)
    words = ("import", "crontab", "crontab", "--paused", "--url-map", "backup.sh=https://ops.example.com/backup")
    assert "made 3 of 3 jobs" in asked(*words).err
    assert "made 0 of 3 jobs" in asked(*words).err
    listed = [json.loads(row) for row in asked("jobs", "list", "--paused", "--json").out.splitlines()]
    assert {job["name"] for job in listed} == {"nightly-report", "example.com-ping", "ops.example.com-backup"}
