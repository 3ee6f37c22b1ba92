"""The outbox over HTTP: what was delivered, what is owed, what was given up."""

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest

from ksana.engine.alerts import Alarm
from ksana.targets.hooks import build_hooks
from ksana.targets.http import TargetPolicy
from tests.api.v2.world import World, open_world
from tests.kit.clock import START
from tests.kit.sink import Reply, Sink


@pytest.fixture
async def alarmed(migrated_sqlite_path: Path, sink: Sink) -> AsyncIterator[World]:
    """An app that tells two addresses of failures: one takes it, one does not."""
    policy = TargetPolicy.of(allow_loopback=True, allow_private=False)
    urls = [sink.on("/good", Reply(200)), sink.on("/bad", Reply(500))]
    hooks = build_hooks(urls, policy=policy, now=lambda: START, signing_secret=None)
    async with open_world(migrated_sqlite_path, hooks=hooks) as world:
        yield world
    for hook in hooks:
        await hook.close()


async def test_a_failed_run_is_told_of_and_the_outbox_says_to_whom(alarmed: World, sink: Sink) -> None:
    """C-14, C-143."""
    world = alarmed
    job = await world.job("doomed", "fail")
    run = await world.run(job)
    await world.work()
    await world.engine.herald.run_once()
    assert sorted(request.path for request in sink.requests) == ["/bad", "/good"]
    page = await world.seen("/api/v2/alerts")
    assert (page["total"], {alert["run_id"] for alert in page["items"]}) == (2, {run["id"]})
    by_state = {alert["state"]: alert for alert in page["items"]}
    assert by_state.keys() == {"delivered", "pending"}
    owed = by_state["pending"]
    assert (owed["due_at"], owed["attempts"]) == ("2030-01-01T12:00:05.000Z", 1)
    assert "500" in owed["error"] and "/bad" not in owed["error"] + owed["hook"]
    assert (owed["payload"]["event"], owed["payload"]["job"]["name"]) == ("run.failed", "doomed")
    assert owed["payload"]["id"] == owed["id"] == sink.requests[0].json()["id"]  # type: ignore[index]
    assert (await world.seen(f"/api/v2/alerts?state=pending&run_id={run['id']}"))["total"] == 1
    assert (await world.seen("/api/v2/alerts?state=failed"))["items"] == []


async def test_what_was_owed_to_a_hook_that_nobody_has_any_more_is_shown_with_the_reason(alarmed: World) -> None:
    world = alarmed
    await world.run(await world.job("doomed", "fail"))
    await world.work()
    later = START + timedelta(hours=1)
    await Alarm(["another"]).give_up_unserved(world.engine.store, START)
    assert (await world.seen("/api/v2/alerts?state=failed"))["total"] == 0
    alarm = Alarm(["another"])
    for now in (later, later + timedelta(minutes=10)):
        await alarm.give_up_unserved(world.engine.store, now)
    page = await world.seen("/api/v2/alerts?state=failed")
    assert (page["total"], {alert["ended_at"] for alert in page["items"]}) == (2, {"2030-01-01T13:10:00.000Z"})
    assert {alert["error"] for alert in page["items"]} == {"no node has this hook in its settings any more"}


@pytest.mark.parametrize(("query", "field"), [("state=gone", "state"), ("run_id=0", "run_id"), ("x=1", "x")])
async def test_a_bad_query_is_refused(world: World, query: str, field: str) -> None:
    answer = await world.get(f"/api/v2/alerts?{query}")
    assert (answer.status, [problem["field"] for problem in answer.json()["problems"]]) == (400, [field])
