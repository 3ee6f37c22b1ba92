"""Handlers at work on the queues of a store: what they are given, what they may say, and how many at once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from ksana import Ack, Item, Ksana, Retry, Run
from ksana.domain import items, runs
from ksana.domain.errors import InvalidArgument
from ksana.domain.items import NewItem, report_of
from ksana.domain.signals import Fail
from ksana.domain.states import State
from ksana.engine.contexts import Contexts
from ksana.handling.workers import HandlerWorkers, of_queues
from tests.kit.processes import DEADLINE
from tests.kit.world import World

OBJECT = {"object_type": "cognition", "object_id": "cg_1", "action": "revalidate", "idempotency_key": "k"}
NEXT = datetime(2031, 1, 1, tzinfo=UTC)


@asynccontextmanager
async def handling(world: World, app: Ksana) -> AsyncIterator[None]:
    node = world.main
    workers = HandlerWorkers(
        app.handlers, node.engine.queue, node.engine.store, node.clock, Contexts(1, ""), holder="app"
    )
    async with world.started():
        working = workers.at_work(timedelta(seconds=5))
        await working.__aenter__()
        await world.pass_time("0s")
        yield
        stopping = asyncio.create_task(working.__aexit__(None, None, None))
        await world.pass_time("10s")
        await stopping


async def put(world: World, payload: Any = None, queue: str = "mail", **said: Any) -> int:
    item = items.Item(payload, said.pop("max_attempts", 3), said.pop("extras", {}))
    [(run, _)] = await world.main.engine.queue.enqueue([NewItem(queue=queue, item=item, **said)])
    assert isinstance(run, runs.Run)
    await world.pass_time("0s")
    return run.id


async def until(world: World, run_id: int, state: State) -> None:
    """Threads have a time of their own."""
    async with asyncio.timeout(DEADLINE):
        while (await world.run(run_id)).state is not state:
            await world.pass_time("0s")


async def test_a_handler_is_given_the_item_and_acknowledges_it_as_it_says(world: World) -> None:
    seen: list[Item] = []
    app = Ksana()

    @app.handler("cognition.revalidate", concurrency=8)
    async def revalidate(item: Item) -> Ack:
        seen.append(item)
        return Ack(output={"ok": True}, audit_event_id="aud_1", next_action_at=NEXT)

    async with handling(world, app):
        run_id = await put(world, {"n": 1}, "governance", type="cognition.revalidate", extras=OBJECT)
        other = await put(world, None, "governance", type="memory.verify")
        assert [(await world.run(id)).state for id in (run_id, other)] == [State.SUCCESS, State.SCHEDULED]
        kept = (await world.store.kept([run_id]))[run_id]
        assert kept.artifact == b'{"ok":true}'
        assert (report_of(kept).audit_event_id, report_of(kept).next_action_at) == ("aud_1", NEXT)
    [item] = seen
    assert (item.job_id, item.object_id, item.action, item.payload) == (f"job_{run_id}", "cg_1", "revalidate", {"n": 1})
    assert (item.status, item.worker_id, item.attempt, item.priority) == ("running", "app", 0, "medium")
    assert item.run_at.tzinfo is UTC


async def test_what_a_handler_returns_or_raises_decides_what_becomes_of_the_item(world: World) -> None:
    app = Ksana()

    @app.handler("mail")
    async def mail(item: Item, run: Run) -> Any:
        match item.payload:
            case "nothing":
                return None
            case "plain":
                return {"next_action_at": "of no object", "attempt": run.attempt}
            case "later":
                raise Retry("5m", "evidence source timed out")
            case "never":
                raise Fail("no such address")
        raise ValueError("broken")

    async with handling(world, app):
        told = []
        for payload in ("nothing", "plain", "later", "never", "break"):
            run = await world.run(await put(world, payload))
            told.append((run.state, run.error, (run.due_at - world.now).total_seconds()))
        last = await put(world, "break", max_attempts=1)
        assert told == [
            (State.SUCCESS, "", 0),
            (State.SUCCESS, "", 0),
            (State.RETRYING, "evidence source timed out", 300),
            (State.FAILED, "no such address", 0),
            (State.RETRYING, "ValueError: broken", 5),
        ]
        assert (await world.run(last)).state is State.DEAD_LETTER


async def test_each_handler_has_its_own_limit_and_what_one_leaves_another_may_take(world: World) -> None:
    free = asyncio.Event()
    busy: dict[str, int] = {"mail": 0, "welcome": 0, "sms": 0}
    most = dict(busy)
    app = Ksana()

    async def work(name: str) -> None:
        busy[name] += 1
        most[name] = max(most[name], busy[name])
        await free.wait()
        busy[name] -= 1

    @app.handler("mail", concurrency=3)
    async def mail(item: Item) -> None:
        await work("mail")

    @app.handler("welcome", queue="mail", concurrency=2)
    async def welcome(item: Item) -> None:
        await work("welcome")

    @app.handler("sms", concurrency=1)
    async def sms(item: Item) -> None:
        await work("sms")

    async with handling(world, app):
        ids = [await put(world, queue="sms") for _ in range(3)]
        ids += [await put(world, type="other") for _ in range(5)]
        ids += [await put(world, type="welcome") for _ in range(5)]
        await world.pass_time("5m")
        assert busy["sms"] == 1
        assert busy["mail"] + busy["welcome"] >= 2
        free.set()
        await world.pass_time("30s")
        assert {(await world.run(id)).state for id in ids} == {State.SUCCESS}
    assert most["mail"] <= 3 and most["welcome"] <= 2 and most["sms"] == 1


async def test_a_handler_that_blocks_holds_its_item_and_finds_what_was_left(world: World) -> None:
    found: list[Any] = []
    app = Ksana()

    @app.handler("mail")
    def mail(item: Item, run: Run) -> None:
        found.append((item.progress, item.attempt, item.last_error))
        if item.progress is None:
            run.save({"sent": 1})
            raise Retry("1s", "half-way")

    async with handling(world, app):
        run_id = await put(world)
        await until(world, run_id, State.RETRYING)
        await world.pass_time("2s")
        await until(world, run_id, State.SUCCESS)
    assert found == [(None, 0, None), ({"sent": 1}, 1, "half-way")]


def test_queues_choose_among_handlers_and_a_function_that_cannot_be_called_is_refused() -> None:
    app = Ksana()
    app.handler("mail")(lambda item: None)
    app.handler("welcome", queue="post")(lambda item: None)
    assert [handler.name for handler in of_queues(app.handlers, ("post",))] == ["welcome"]
    assert len(of_queues(app.handlers, ())) == 2
    app.handler("sms")(lambda item, number: None)
    assert len(of_queues(app.handlers, ("mail",))) == 1
    with pytest.raises(InvalidArgument, match="number"):
        of_queues(app.handlers, ())


@pytest.mark.parametrize("at", [datetime(2031, 1, 1), "2031-01-01T00:00:00", "whenever"])  # noqa: DTZ001 - it must not
def test_an_ack_wants_its_instant_with_a_zone(at: Any) -> None:
    with pytest.raises(InvalidArgument, match="next_action_at"):
        Ack(next_action_at=at)
