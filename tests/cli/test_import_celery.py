"""`ksana import celery`: what a beat schedule becomes."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Ksana
from tests.cli.nodes import serving

FLEET = """
from datetime import timedelta
from celery import Celery
from celery.schedules import crontab, schedule, solar

app = Celery("fleet", broker="amqp://shop:s3cret@broker//")
app.conf.timezone = "Asia/Shanghai"
app.conf.beat_schedule = {
    "bills": {"task": "shop.bill", "schedule": crontab(hour=6, minute=30, day_of_week="mon-fri"), "args": (1, 2)},
    "often": {"task": "shop.poll", "schedule": crontab(minute="*/15", month_of_year="11-2")},
    "ping": {"task": "shop.ping", "schedule": 30.0, "options": {"queue": "fast", "expires": 60, "countdown": 1}},
    "sweep": {"task": "shop.sweep", "schedule": timedelta(hours=1), "kwargs": {"deep": True}},
    "wrapped": {"task": "shop.wrap", "schedule": schedule(run_every=90)},
    "dawn": {"task": "shop.open", "schedule": solar.__new__(solar)},
    "friday13": {"task": "shop.fear", "schedule": crontab(0, 0, day_of_week="fri", day_of_month="13")},
    "object": {"task": "shop.odd", "schedule": 1, "args": (object(),)},
}
"""
NAMES = ["bills", "often", "ping", "sweep", "wrapped"]


@pytest.fixture
def fleet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "fleet_of_shop.py").write_text(FLEET)
    monkeypatch.delitem(sys.modules, "fleet_of_shop", raising=False)
    return "fleet_of_shop:app"


def test_what_a_beat_schedule_would_become_is_shown_and_nothing_is_made(
    ksana: Ksana, fleet: str, tmp_path: Path
) -> None:
    said = ksana("import", "celery", fleet)
    assert said.code == 1
    assert said.out.splitlines() == [
        "bills\t30 6 * * 1-5 Asia/Shanghai\tshop.bill",
        "often\t*/15 * * 1-2,11-12 * Asia/Shanghai\tshop.poll",
        "ping\t30s\tshop.ping\tqueue fast",
        "sweep\t1h\tshop.sweep",
        "wrapped\t1m30s\tshop.wrap",
    ]
    assert said.err.splitlines()[0] == "nothing was made; say --apply to make them"
    assert "ksana: dawn is not taken over: it follows the sun, which no cron expression does" in said.err
    assert "ksana: friday13 is not taken over: it names a day of the month and a day of the week" in said.err
    assert "ksana: object is not taken over: its arguments are no JSON" in said.err
    assert "ksana: ping: the option countdown is left behind" in said.err
    assert "s3cret" not in said.out + said.err
    assert not (tmp_path / "data").exists()


def test_they_are_made_in_a_store_once(ksana: Ksana, fleet: str) -> None:
    arguments = ("import", "celery", fleet, "--apply", "--store", "sqlite:k.db", "--backend", "env:CELERY_RESULTS")
    assert "made 5 of 5 jobs" in ksana(*arguments).err
    again = ksana(*arguments, "--json")
    assert "made 0 of 5 jobs" in again.err
    jobs = {job["name"]: job for job in map(json.loads, again.out.splitlines())}
    assert jobs["ping"] == {
        "name": "ping",
        "every": "30s",
        "target": {
            "kind": "celery",
            "config": {
                "task": "shop.ping",
                "args": [],
                "kwargs": {},
                "broker": "env:CELERY_BROKER_URL",
                "backend": "env:CELERY_RESULTS",
                "queue": "fast",
                "expires": "1m",
            },
        },
    }


async def test_or_on_a_server(ksana: Ksana, fleet: str, tmp_path: Path) -> None:
    async with serving(tmp_path) as node:
        assert "made 5 of 5 jobs" in ksana("import", "celery", fleet, "--apply", "--url", node.url).err
        _, page = await node.call("GET", "/api/v2/jobs?kind=celery&sort=name")
        jobs: dict[str, Any] = {job["name"]: job for job in page["items"]}
    assert list(jobs) == NAMES
    assert jobs["bills"]["schedule"]["timezone"] == "Asia/Shanghai"
    assert jobs["bills"]["target"]["config"]["args"] == [1, 2]
    unreachable = ksana("import", "celery", fleet, "--apply", "--url", "http://127.0.0.1:1")
    assert (unreachable.code, "no connection" in unreachable.err) == (5, True)


@pytest.mark.parametrize(("path", "code"), [("fleet_of_shop", 2), ("nowhere:app", 3), ("fleet_of_shop:nothing", 3)])
def test_an_app_that_is_not_there_is_named(ksana: Ksana, fleet: str, path: str, code: int) -> None:
    assert ksana("import", "celery", path).code == code
