"""What users' own tests can do with the fixture."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from ksana.domain.errors import InvalidArgument, NotFound
from ksana.domain.states import State
from ksana.testing.rehearsal import Broken, Refused, Rehearsal, Reply, Silent

SYNC = "https://svc.internal/sync"
FRIDAY = "2026-03-27T08:59:59+08:00"


def test_a_report_skips_the_weekend(ksana: Rehearsal) -> None:
    ksana.http.reply("https://*.internal/*", 200)
    ksana.load("tests.pytest_plugin.app:app", at=FRIDAY)
    assert ksana.runs("report").count == 0
    ksana.advance("1s")
    assert ksana.runs("report").last.ok
    ksana.advance("72h")
    assert ksana.runs("report").count == 2
    assert [run.result for run in ksana.runs("report")] == ["2026-03-27", "2026-03-30"]
    assert ksana.now == datetime(2026, 3, 30, 1, tzinfo=UTC)


def test_three_tries(ksana: Rehearsal) -> None:
    ksana.http.reply(SYNC, 503, 503, 200)
    run = ksana.load("tests.pytest_plugin.app:app").run("sync")
    assert [attempt.code for attempt in run.attempts] == [503]
    ksana.advance("1m")
    assert [attempt.code for attempt in run.attempts] == [503, 503, 200]
    assert [call.at - ksana.http.calls[0].at for call in ksana.http.calls] == [timedelta(seconds=s) for s in (0, 5, 10)]


def test_a_chain_goes_from_step_to_step(ksana: Rehearsal) -> None:
    ksana.http.reply("https://dw.internal/load", Reply(after="3s"))
    ksana.http.reply(SYNC, 200)
    ksana.load("tests.pytest_plugin.app:app", at="2026-03-27T01:59:00Z")
    ksana.advance("1m2s")
    assert ksana.runs("nightly").states == [State.RUNNING]
    ksana.advance("1s")
    assert ksana.runs("nightly").states == [State.SUCCESS]
    [call] = ksana.http.calls_to("https://dw.internal/load")
    assert call.json == {"rows": 41}


def test_functions_that_sleep_do_so_in_the_time_of_the_test(ksana: Rehearsal) -> None:
    ksana.http.reply("https://*.internal/*", 200)
    ksana.load("tests.pytest_plugin.app:app", at="2026-03-27T01:59:00Z")
    ksana.advance("1m19s")
    assert ksana.runs("nap").states == [State.RUNNING]
    ksana.advance("1s")
    assert ksana.runs("nap").last.result == "rested"
    ksana.advance_to("2026-03-27T05:00:00Z")
    [late] = ksana.runs("oversleep")
    assert (late.state, [attempt.timed_out for attempt in late.attempts]) == (State.TIMEOUT, [True, True])
    [lucky] = ksana.runs("third_time_lucky")
    assert (lucky.result, lucky.ended_at) == ("at last", datetime(2026, 3, 27, 4, 2, tzinfo=UTC))
    assert ksana.runs("ping").count == 6
    assert set(ksana.runs("ping").states) == {State.SUCCESS}


def test_what_was_called_and_with_what_is_seen(ksana: Rehearsal) -> None:
    ksana.http.reply("https://svc.internal/*", Reply(json={"rows": 42}, headers={"X-From": "svc"}, after="2s"))
    ksana.job("load", target={"kind": "http", "config": {"url": SYNC + "?full=1", "json": {"run": "{{run_id}}"}}})
    run = ksana.run("load", input={"day": 1})
    assert (run.state, ksana.http.calls_to(SYNC)[0].json) == (State.RUNNING, {"run": str(run.id)})
    ksana.advance("2s")
    assert (run.ok, run.result) == (True, {"rows": 42})
    [call] = ksana.http.calls
    assert (call.method, call.url, call.headers["X-Ksana-Attempt"]) == ("POST", f"{SYNC}?full=1", "1")
    exchange = run.attempts[0].exchange
    assert exchange is not None
    assert exchange.response_headers["x-from"] == "svc"


def test_connections_fail_as_told(ksana: Rehearsal) -> None:
    ksana.http.reply(f"POST {SYNC}", Refused(), Broken(), Silent(), Reply(after="1h"), 200)
    ksana.job("sync", http=f"POST {SYNC}", timeouts={"total": "10s"}, retry={"max_attempts": 9, "initial_delay": "1s"})
    run = ksana.run("sync")
    ksana.advance("30s")
    errors = [attempt.error for attempt in run.attempts]
    assert run.ok
    assert "connection refused by svc.internal:443" in errors[0]
    assert "broke the connection" in errors[1]
    assert errors[2:] == ["no answer within 10s"] * 2 + [""]
    ksana.job("typo", http="GET https://svc.internal/snyc")
    lost = ksana.run("typo")
    assert lost.state is State.FAILED
    assert 'ksana.http.reply("https://svc.internal/snyc", 200)' in lost.error


def test_callbacks_come_when_the_test_says_so_or_are_missed(ksana: Rehearsal) -> None:
    ksana.http.reply(SYNC, 202)
    config = {"url": SYNC, "mode": "async"}
    ksana.job("export", target={"kind": "http", "config": config}, timeouts={"callback": "5m"})
    first, second, third = ksana.run("export"), ksana.run("export"), ksana.run("export")
    assert ksana.http.calls[0].headers["X-Callback-Url"].startswith("http://ksana.test/")
    first.call_back()
    second.call_back(error="disk full")
    assert (first.ok, second.state, second.error) == (True, State.FAILED, "disk full")
    ksana.advance("5m")
    assert third.state is State.TIMEOUT


async def test_a_test_that_awaits_may_use_it_too(ksana: Rehearsal) -> None:
    ksana.job("hourly", target={"kind": "noop"}, every="1h")
    ksana.advance("24h")
    await asyncio.sleep(0)
    assert ksana.runs("hourly").count == 24
    assert ksana.runs("hourly")[0].planned_at == datetime(2030, 1, 1, 1, tzinfo=UTC)


def test_what_cannot_be_is_refused(ksana: Rehearsal) -> None:
    ksana.job("j", target={"kind": "noop"})
    with pytest.raises(InvalidArgument, match="begun"):
        ksana.begin(FRIDAY)
    with pytest.raises(InvalidArgument, match="go back"):
        ksana.advance_to(ksana.now - timedelta(seconds=1))
    with pytest.raises(InvalidArgument, match="status"):
        ksana.http.reply(SYNC, 20)
    with pytest.raises(NotFound, match="no job called 'k'"):
        ksana.run("k")
    with pytest.raises(NotFound, match="no app"):
        ksana.load("tests.pytest_plugin.app:reports")
    with pytest.raises(AssertionError, match="not run yet"):
        _ = ksana.runs("j").last


def test_handlers_see_to_items_in_the_time_of_the_test(ksana: Rehearsal) -> None:
    ksana.load("tests.pytest_plugin.app:post", at="2026-03-27T05:00:00Z")
    items = [ksana.enqueue("mail", n) for n in ("one", "two", "three")]
    assert [item.state for item in items] == [State.RUNNING, State.RUNNING, State.SCHEDULED]
    ksana.advance("90s")
    assert [item.ok for item in items] == [True, True, False]
    ksana.advance("90s")
    assert (items[2].output, items[2].next_action_at) == ({"to": "three"}, items[2].run_at + timedelta(days=7))
    late = ksana.enqueue("mail", "twice", delay="1h")
    ksana.advance("1h")
    assert (late.state, late.error, late.attempt) == (State.RETRYING, "not yet", 1)
    ksana.advance("6m30s")
    assert late.ok
    about = ksana.enqueue_action("memory", "m_1", "verify", ksana.now + timedelta(days=1))
    other = ksana.enqueue("nobody", 1)
    ksana.advance("23h")
    assert about.state is State.SCHEDULED
    ksana.advance("1h")
    assert (about.output, other.state) == ("m_1 is fine", State.SCHEDULED)
