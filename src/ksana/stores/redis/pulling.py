"""Items of the queue: enqueued once, handed out to one worker at a time."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from ksana.domain.items import HEAD_STARTS, Enqueued, Pull, PullOrder
from ksana.domain.policies import Priority
from ksana.domain.runs import Run
from ksana.domain.times import to_micros
from ksana.stores.redis.link import Link
from ksana.stores.redis.scripts import ENQUEUE, PULL
from ksana.stores.redis.shelves import answer_args, decode_answer
from ksana.stores.redis.values import fitting, run_to_value, runs_from_reply

_TICK = timedelta(microseconds=1)


async def enqueue(link: Link, items: Sequence[Enqueued]) -> list[int]:
    if not items:
        return []
    with fitting():
        args: list[Any] = [len(items)]
        for item in items:
            args += (*answer_args(item.record), run_to_value(item.run), item.run.input or b"")
    earlier = await link.run(ENQUEUE, *args)
    return [
        int(decode_answer(value).body) if value else item.run.id for item, value in zip(items, earlier, strict=True)
    ]


async def pull(link: Link, pull: Pull) -> list[Run]:
    starts = [HEAD_STARTS[priority] // _TICK if pull.order is PullOrder.AGE else 0 for priority in sorted(Priority)]
    args = (pull.queue, to_micros(pull.now), to_micros(pull.until), pull.holder, pull.limit, to_micros(pull.begun_at))
    types = dict.fromkeys(pull.types)
    return runs_from_reply(await link.run(PULL, *args, *starts, len(types), *types))
