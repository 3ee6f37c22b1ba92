"""Items held by a block of code: how it ends is told to the server, and the lease does not run out meanwhile."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import pytest

from ksana import AsyncClient, Client, Retry
from ksana.client import Conflict, Item
from ksana.domain.errors import InvalidState
from ksana.domain.signals import Fail
from tests.cli.nodes import serving
from tests.kit.processes import DEADLINE


def work(item: Item) -> None:
    match item.payload:
        case "later":
            raise Retry("5m", "not now")
        case "never":
            raise Fail("no use")
        case "broken":
            raise ValueError
        case "stopped":
            raise KeyboardInterrupt


def hold_all(url: str) -> dict[str, Item]:
    """What a worker that blocks does, once for every way it can end."""
    with Client(url) as k:
        payloads = ["fine", "said", "later", "never", "broken", "stopped"]
        made = {payload: k.queue.enqueue("mail", payload) for payload in payloads}
        with pytest.raises(InvalidState, match="nobody has pulled"), made["fine"]:
            pass
        for item in k.queue.pull("mail", "w1", limit=5):
            with item:
                if item.payload == "said":
                    k.queue.ack(item, output={"n": 1})
                work(item)
        [last] = k.queue.pull("mail", worker="w1")
        with pytest.raises(KeyboardInterrupt), last:
            work(last)
        return {payload: k.queue.get(item) for payload, item in made.items()}


def hold_for_long(url: str) -> None:
    """A block that takes longer than the lease, and one that has lost it."""
    with Client(url) as k:
        k.queue.enqueue("long", max_attempts=2)
        [item] = k.queue.pull("long", "w1", lease="1s")
        first = item.lease_until
        with item:
            while (seen := k.queue.get(item)).lease_until == first:
                assert seen.status == "running"
        again = k.queue.get(item)
        assert (again.status, again.attempt) == ("succeeded", 0)
        k.queue.enqueue("lost")
        [item] = k.queue.pull("lost", "w1")
        with pytest.raises(Conflict) as lost, item:
            k.queue.release(item)
        assert lost.value.code == "STALE_LEASE"


async def test_a_block_that_holds_an_item_says_how_it_ended(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with serving(tmp_path) as node, AsyncClient(node.url) as k:
        with caplog.at_level(logging.WARNING, "ksana.client"):
            seen = await asyncio.to_thread(hold_all, node.url)
        told = {name: (item.status, item.attempt, item.last_error) for name, item in seen.items()}
        assert told == {
            "fine": ("succeeded", 0, None),
            "said": ("succeeded", 0, None),
            "later": ("queued", 1, "not now"),
            "never": ("failed", 1, "no use"),
            "broken": ("queued", 1, "ValueError"),
            "stopped": ("queued", 0, None),
        }
        assert seen["said"].output == {"n": 1}
        assert (seen["later"].run_at - seen["broken"].run_at).total_seconds() > 200
        [record] = caplog.records
        assert record.exc_info is not None
        await asyncio.to_thread(hold_for_long, node.url)
        await hold_awaiting(k)


async def hold_awaiting(k: AsyncClient) -> None:
    """The same for programs that await."""
    for payload in ("fine", "later"):
        await k.queue.enqueue("post", payload)
    pulled = await k.queue.pull("post", "w1", lease="1s")
    with pytest.raises(InvalidState, match="async with item"), pulled[0]:
        pass
    async with pulled[0] as item, asyncio.timeout(DEADLINE):
        while (await k.queue.get(item)).lease_until == item.lease_until:
            pass
    # The other has waited for so long that it may be lost: it is asked for before the work begins.
    async with pulled[1] as item:
        work(item)
    assert [(await k.queue.get(item)).status for item in pulled] == ["succeeded", "queued"]
    await k.queue.enqueue("halt")
    [halted] = await k.queue.pull("halt", "w1")
    begun = asyncio.Event()

    async def hang() -> None:
        async with halted:
            begun.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(hang())
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    back = await k.queue.get(halted)
    assert (back.status, back.attempt) == ("queued", 0)
