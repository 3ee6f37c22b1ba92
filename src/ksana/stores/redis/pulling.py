"""Items of the queue: enqueued once, handed out to one worker at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any
from weakref import WeakValueDictionary

from ksana.domain.handing_out import Pulled
from ksana.domain.items import Enqueued, Pull
from ksana.domain.times import to_micros
from ksana.stores.redis.handing_out import Seen, hand_out, wish_args
from ksana.stores.redis.link import Link
from ksana.stores.redis.scripts import ENQUEUE, PULL
from ksana.stores.redis.shelves import answer_args, decode_answer
from ksana.stores.redis.values import fitting, run_to_value, runs_from_reply


async def enqueue(link: Link, items: Sequence[Enqueued]) -> list[int]:
    if not items:
        return []
    with fitting():
        args = items_args(items)
    earlier = await link.run(ENQUEUE, *args)
    return [
        int(decode_answer(value).body) if value else item.run.id for item, value in zip(items, earlier, strict=True)
    ]


def items_args(items: Sequence[Enqueued]) -> list[Any]:
    args: list[Any] = [len(items)]
    for item in items:
        args += (*answer_args(item.record), run_to_value(item.run), item.run.input or b"")
    return args


class Pulls:
    """Pulls from queues. Those of one process from a queue that is governed go one after the other: they would only
    overtake each other."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def pull(self, pull: Pull) -> Pulled:
        word, *told = await self._ask(pull)
        if word == b"done":
            return Pulled(runs_from_reply(told[0]))
        lock = self._locks.setdefault(pull.queue, asyncio.Lock())
        is_stale = lock.locked()
        async with lock:
            while True:
                if is_stale:
                    word, *told = await self._ask(pull)
                    if word == b"done":
                        return Pulled(runs_from_reply(told[0]))
                handed = await hand_out(self._link, pull, Seen.told(*told))
                if handed is not None:
                    return handed
                is_stale = True

    async def _ask(self, pull: Pull) -> list[Any]:
        args = (pull.limit, pull.holder, to_micros(pull.until), to_micros(pull.begun_at))
        reply: list[Any] = await self._link.run(PULL, *wish_args(pull), *args)
        return reply
