"""Jobs written down in code: what the decorators take, refuse and leave alone."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest

from ksana import Ksana
from ksana.domain.errors import AlreadyExists, InvalidArgument
from ksana.domain.policies import Misfire, MisfireRule, Overlap, OverlapRule, Priority, Retry, RetryStrategy
from ksana.domain.schedules import CronSchedule, Every, Once
from ksana.domain.times import EPOCH


def test_a_decorated_function_stays_what_it_is() -> None:
    app = Ksana()

    def report(day: str = "today") -> str:
        return f"report for {day}"

    async def ping() -> None: ...

    assert app.cron("0 9 * * 1-5")(report) is report
    assert app.every("30s")(ping) is ping
    assert report("Monday") == "report for Monday"
    assert app.functions == {"report": report, "ping": ping}


def test_everything_that_can_be_said_is_in_the_job() -> None:
    app = Ksana()

    @app.cron(
        "0 9 * * 1-5",
        tz="Asia/Shanghai",
        jitter="5s",
        name="morning report",
        args=[1],
        kwargs={"to": "all"},
        retries=3,
        backoff="5s..60s",
        timeout="2m",
        overlap="skip",
        max_concurrency=2,
        misfire="catch_up",
        catch_up=4,
        priority="high",
        queue="reports",
        tags=["billing"],
        description="Every working day",
    )
    def report(number: int, to: str) -> None: ...

    spec = app.definitions["morning report"].spec
    assert spec.schedule == CronSchedule("0 9 * * 1-5", "Asia/Shanghai", jitter=timedelta(seconds=5))
    assert spec.target.config == {"function": "morning report", "args": [1], "kwargs": {"to": "all"}}
    assert spec.retry == Retry(
        max_attempts=4,
        strategy=RetryStrategy.EXPONENTIAL,
        initial_delay=timedelta(seconds=5),
        max_delay=timedelta(seconds=60),
    )
    assert spec.timeouts.total == timedelta(minutes=2)
    assert (spec.overlap, spec.misfire) == (Overlap(OverlapRule.SKIP, 2), Misfire(MisfireRule.CATCH_UP, 4))
    assert (spec.priority, spec.queue, spec.tags) == (Priority.HIGH, "reports", ("billing",))
    assert (spec.name, spec.ref, spec.description) == ("morning report", "morning report", "Every working day")


def test_the_three_ways_to_say_when() -> None:
    app = Ksana()
    noon = datetime(2030, 1, 1, 12, tzinfo=UTC)
    app.every(timedelta(seconds=30), jitter="5s", start_at="2030-01-01T12:00:00Z", name="every", backoff="7s")(print)
    app.at("2030-01-01T20:00:00+08:00", name="text")(print)
    app.at(noon, name="instant")(print)
    specs = {name: definition.spec for name, definition in app.definitions.items()}
    assert specs["every"].schedule == Every(timedelta(seconds=30), EPOCH, start_at=noon, jitter=timedelta(seconds=5))
    assert specs["every"].retry == Retry(initial_delay=timedelta(seconds=7))
    assert specs["text"].schedule == specs["instant"].schedule == Once(noon)


@pytest.mark.parametrize(
    ("decorate", "field"),
    [
        (lambda app: app.every("soon"), "every"),
        (lambda app: app.every("10ms"), "schedule.every"),
        (lambda app: app.every("1s", jitter="2s"), "schedule.jitter"),
        (lambda app: app.every("1s", start_at="noon"), "start_at"),
        (lambda app: app.cron("* * *"), "schedule.expr"),
        (lambda app: app.cron("* * * * *", tz="Mars/Base"), "schedule.timezone"),
        (lambda app: app.at("tomorrow"), "at"),
        (lambda app: app.at(datetime(2030, 1, 1)), "schedule.run_at"),  # noqa: DTZ001
        (lambda app: app.every("1s", retries=-1), "retry.max_attempts"),
        (lambda app: app.every("1s", backoff="5s..x"), "backoff"),
        (lambda app: app.every("1s", timeout="0s"), "timeouts.total"),
        (lambda app: app.every("1s", overlap="sometimes"), "overlap"),
        (lambda app: app.every("1s", misfire="cry"), "misfire"),
        (lambda app: app.every("1s", misfire="catch_up"), "catch_up"),
        (lambda app: app.every("1s", catch_up=3), "catch_up"),
        (lambda app: app.every("1s", priority="urgent"), "priority"),
        (lambda app: app.every("1s", queue=""), "queue"),
        (lambda app: app.every("1s", retry=3), "retry"),
    ],
)
def test_what_cannot_work_is_refused_at_its_line(decorate: Callable[[Any], Any], field: str) -> None:
    app = Ksana()
    with pytest.raises(InvalidArgument) as refusal:
        decorate(app)(test_what_cannot_work_is_refused_at_its_line)
    assert [problem.field for problem in refusal.value.problems] == [field]
    assert app.definitions == {}


def test_a_name_is_needed_and_taken_once() -> None:
    app = Ksana()
    for nameless in (lambda: None, partial(print)):
        with pytest.raises(InvalidArgument, match="name="):
            app.every("1s")(nameless)
    app.every("1s")(print)
    with pytest.raises(AlreadyExists, match="'print'"):
        app.every("1s")(print)
    app.every("1s", name="another")(print)
    assert list(app.functions) == ["print", "another"]


def test_modules_write_down_their_own_and_are_included() -> None:
    app, billing, invoices = Ksana(), Ksana(), Ksana()
    app.include(billing)
    billing.include(invoices)
    app.include(invoices)
    app.every("1s", name="a")(print)
    billing.every("1s", name="b")(print)
    invoices.every("1s", name="c")(print)
    assert list(app.definitions) == ["a", "b", "c"]
    with pytest.raises(InvalidArgument, match="include"):
        invoices.include(app)
    with pytest.raises(InvalidArgument, match="include"):
        app.include(app)
    invoices.every("1s", name="a")(print)
    with pytest.raises(AlreadyExists, match="'a'"):
        app.definitions  # noqa: B018


def test_writing_down_costs_neither_a_server_nor_a_loop() -> None:
    """Importing a module with jobs reads no settings, opens no store, and loads nothing that would."""
    heavy = ("uvicorn", "starlette", "redis", "ksana.app", "ksana.config")
    code = f"""import sys; from ksana import Ksana
Ksana("sqlite:nowhere/at/all.db").every("1s")(print)
print([name for name in {heavy} if name in sys.modules])"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "[]\n"
