"""The worker that is built in: it does what it has functions for, holds what it does, and gives back what it cannot
finish."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

from ksana.domain.items import Item, NewItem, Report, report_of
from ksana.domain.outcomes import AttemptContext
from ksana.domain.runs import Run
from ksana.domain.states import Reason, State
from ksana.engine.contexts import Contexts
from ksana.engine.queue_worker import LEASE, QueueWorker
from ksana.targets.python import PythonTarget
from ksana.targets.signals import Fail, Retry
from tests.kit.world import World

OBJECT = {"object_type": "memory", "object_id": "m_1", "action": "verify"}
GRACE = timedelta(seconds=5)


@asynccontextmanager
async def working(
    world: World,
    functions: dict[str, Callable[..., Any]],
    name: str = "mail",
    capacity: int = 2,
    queue: Any = None,
) -> AsyncIterator[QueueWorker]:
    node = world.main
    worker = QueueWorker(
        queue or node.engine.queue,
        node.engine.store,
        node.clock,
        PythonTarget(functions),
        Contexts(1, ""),
        name=name,
        holder="built-in",
        functions=functions,
        capacity=capacity,
    )
    async with world.started():
        loop = asyncio.create_task(worker.run())
        await world.pass_time("0s")
        yield worker
        stopping = asyncio.create_task(worker.stop(GRACE))
        await world.pass_time("10s")
        await asyncio.gather(stopping, loop)


async def put(world: World, payload: Any = None, queue: str = "mail", **said: Any) -> int:
    item = Item(payload, said.pop("max_attempts", 3), said.pop("extras", {}))
    [(run, _)] = await world.main.engine.queue.enqueue([NewItem(queue=queue, item=item, **said)])
    assert isinstance(run, Run)
    await world.pass_time("0s")
    return run.id


async def test_items_are_done_by_the_function_called_like_their_type_or_their_queue(world: World) -> None:
    """S-37: pulled when they are due, acknowledged or failed as the function says."""
    done: list[Any] = []

    async def welcome(item: dict[str, Any]) -> dict[str, Any]:
        done.append(item)
        return {"sent": True}

    async def mail(item: dict[str, Any], run: AttemptContext) -> None:
        done.append((item["type"], run.input, run.job_name))
        match run.input:
            case "fail":
                raise Fail("no such address")
            case "retry":
                raise Retry(timedelta(minutes=2), "try later")
            case "break":
                raise ValueError("broken")

    async with working(world, {"welcome": welcome, "mail": mail}):
        first = await put(world, {"to": "x"}, type="welcome", due_at=world.now + timedelta(seconds=3))
        await world.pass_time("3s")
        over = await world.run(first)
        assert (over.state, over.holder, over.ended_at) == (State.SUCCESS, "built-in", world.now)
        assert (await world.store.kept([first]))[first].artifact == b'{"sent":true}'
        assert (done[0]["payload"], done[0]["job_id"], done[0]["attempt"]) == ({"to": "x"}, f"job_{first}", 0)
        states = []
        for payload in ("fine", "fail", "retry", "break"):
            run = await world.run(await put(world, payload, type="other"))
            states.append((run.state, run.error, (run.due_at - world.now).total_seconds()))
        assert done[1] == ("other", "fine", "other")
        assert states == [
            (State.SUCCESS, "", 0),
            (State.FAILED, "no such address", 0),
            (State.RETRYING, "try later", 120),
            (State.RETRYING, "ValueError: broken", 5),
        ]


async def test_what_it_has_no_function_for_is_left_to_others(world: World) -> None:
    async def verify(item: dict[str, Any]) -> dict[str, Any]:
        return {"audit_event_id": "aud_1", "next_action_at": item["payload"]}

    async with working(world, {"memory.verify": verify}, "governance"):
        ids = [
            await put(world, payload, "governance", type="memory.verify", extras=OBJECT)
            for payload in ("2031-01-01T00:00:00Z", "whenever")
        ]
        other = await put(world, None, "governance", type="memory.decay")
        await world.pass_time("1m")
        runs = [await world.run(id) for id in (*ids, other)]
        assert [run.state for run in runs] == [State.SUCCESS, State.FAILED, State.SCHEDULED]
        assert "next_action_at" in runs[1].error
        told = report_of((await world.store.kept(ids))[ids[0]])
        assert told.audit_event_id == "aud_1" and told.next_action_at is not None


async def test_it_works_on_so_many_at_once_and_holds_them_for_as_long_as_it_takes(world: World) -> None:
    free = asyncio.Event()
    found: list[Any] = []

    async def mail(item: dict[str, Any], run: AttemptContext) -> None:
        found.append(run.checkpoint)
        run.save({"seen": item["payload"]})
        await free.wait()
        raise Retry(timedelta(0), "once more")

    async with working(world, {"mail": mail}, capacity=2):
        ids = [await put(world, n, max_attempts=2) for n in range(3)]
        await world.pass_time("10m")
        assert [(await world.run(id)).state for id in ids] == [State.RUNNING, State.RUNNING, State.SCHEDULED]
        held = await world.run(ids[0])
        assert held.deadline_at is not None and held.deadline_at > world.now + LEASE / 2
        assert report_of((await world.store.kept(ids))[ids[0]]) == Report({"seen": 0})
        free.set()
        await world.pass_time("10s")
        assert {(await world.run(id)).state for id in ids} == {State.DEAD_LETTER}
        assert sorted(map(str, found)) == ["None"] * 3 + [str({"seen": n}) for n in range(3)]


async def test_a_worker_that_stops_gives_back_what_it_cannot_finish(world: World) -> None:
    ended: list[str] = []

    async def mail(item: dict[str, Any]) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("cancelled")

    async with working(world, {"mail": mail}):
        run_id = await put(world)
    back = await world.run(run_id)
    assert (back.state, back.reason, back.failures, ended) == (State.RETRYING, Reason.RELEASED, 0, ["cancelled"])


async def test_a_store_that_is_away_for_a_moment_costs_no_attempt(world: World) -> None:
    tried: list[int] = []

    async def mail(item: dict[str, Any], run: AttemptContext) -> None:
        tried.append(run.attempt)
        if run.attempt == 1:
            raise Retry(timedelta(seconds=1), "not yet")

    with world.store_away("kept", times=2):
        async with working(world, {"mail": mail}):
            run_id = await put(world, max_attempts=2)
            await world.pass_time("90s")
            over = await world.run(run_id)
            assert (over.state, over.failures, tried) == (State.SUCCESS, 1, [1, 2])


async def test_items_on_their_way_to_a_worker_that_stops_are_given_back(world: World) -> None:
    """Nobody would wait for them to be done."""
    arrived = asyncio.Event()
    done: list[Any] = []
    queue = world.main.engine.queue

    class Slow:
        """A queue whose items take a while to arrive."""

        def __getattr__(self, name: str) -> Any:
            return getattr(queue, name)

        async def pull(self, *args: Any, **kwargs: Any) -> list[Run]:
            runs = await queue.pull(*args, **kwargs)
            await arrived.wait()
            return runs

    async with working(world, {"mail": done.append}, queue=Slow()):
        run_id = await put(world)
        asyncio.get_running_loop().call_soon(arrived.set)
    back = await world.run(run_id)
    assert (back.state, back.reason, back.failures, done) == (State.RETRYING, Reason.RELEASED, 0, [])


async def test_whoever_loses_an_item_lets_go_of_it(world: World) -> None:
    ended: list[str] = []

    async def mail(item: dict[str, Any]) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("cancelled")

    async with working(world, {"mail": mail}):
        run_id = await put(world, max_attempts=1)
        await world.main.engine.queue.fail(run_id, "somebody said so")
        await world.pass_time("30s")
        assert ended == ["cancelled"]
        assert (await world.run(run_id)).error == "somebody said so"


async def test_a_store_that_is_away_is_waited_for(world: World) -> None:
    async def mail(item: dict[str, Any]) -> None: ...

    async with working(world, {"mail": mail}):
        run_id = await put(world, due_at=world.now + timedelta(seconds=2))
        with world.store_away("turn", times=2), world.store_away("pull", times=2):
            await world.pass_time("20s")
        await world.pass_time("5s")
        assert (await world.run(run_id)).state is State.SUCCESS


async def test_one_whose_node_drains_pulls_nothing_more_until_that_is_undone(world: World) -> None:
    done = asyncio.Event()
    engine = world.main.engine

    async def mail(item: dict[str, Any]) -> None:
        done.set()

    async with working(world, {"mail": mail}) as worker:
        engine.workers.append(worker)
        assert engine.node is not None
        await engine.nodes.drain(engine.node.id)
        await world.pass_time("2s")
        item = await put(world, 1)
        await world.pass_time("1m")
        assert (await engine.queue.get(item)).state is State.SCHEDULED
        await engine.nodes.drain(engine.node.id, is_draining=False)
        await world.pass_time("2s")
        async with asyncio.timeout(10):
            await done.wait()
