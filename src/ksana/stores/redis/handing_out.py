"""Handing out items of a queue whose settings, or whose objects, have a say: looked at, decided here, and handed out by
one script, which does nothing if what the decision rests on is no longer so."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from ksana.domain.handing_out import HandingOut, Known, Pulled, Refusal
from ksana.domain.items import HEAD_STARTS, Pull, PullOrder
from ksana.domain.limits import QueueSettings
from ksana.domain.policies import Priority
from ksana.domain.runs import Run
from ksana.domain.times import from_micros, to_micros
from ksana.stores.redis.governed_values import object_from_value, objects_args, settings_from_value
from ksana.stores.redis.link import Link
from ksana.stores.redis.scripts import HAND_OUT, LOOK_AT_ITEMS
from ksana.stores.redis.search import with_inputs
from ksana.stores.redis.values import fitting, run_from_value, runs_from_reply

_TICK = timedelta(microseconds=1)
_PAGE = 200

_Set = tuple[int, str | None]
"""One of the sets in which items wait, by priority and, where types are asked for, by type."""


class Seen(NamedTuple):
    """A queue as it was seen: how often it was pulled from this way, what was set for it, how many of its items are
    held, and until when it is busy."""

    pulls: bytes
    settings: QueueSettings | None
    held: int
    busy_until: datetime | None

    @classmethod
    def told(cls, pulls: bytes, settings: bytes | None, held: int, busy: bytes | None) -> Seen:
        return cls(pulls, None if settings is None else settings_from_value(settings), held, _busy_until(busy))


def wish_args(pull: Pull) -> list[Any]:
    """Which items are wanted, as scripts take it."""
    starts = [HEAD_STARTS[priority] // _TICK if pull.order is PullOrder.AGE else 0 for priority in sorted(Priority)]
    types = _types(pull)
    return [pull.queue, to_micros(pull.now), *starts, len(types), *types]


def _types(pull: Pull) -> list[str]:
    return list(dict.fromkeys(pull.types))


async def hand_out(link: Link, pull: Pull, seen: Seen) -> Pulled | None:
    """Hand out what may be; None if somebody came between."""
    handing = HandingOut(pull, seen.settings, seen.held, seen.busy_until)
    looking = _Looking(link, pull)
    while not handing.is_over and not looking.is_over:
        page = await looking.next()
        handing.learn({subject: looking.known[subject] for subject in handing.unknown(page)})
        handing.offer(page)
    handed: list[Run] = []
    if handing.handed:
        with fitting():
            args = _args(pull, seen, looking, handing)
        word, *reply = await link.run(HAND_OUT, *args)
        if word == b"again":
            return None
        handed = runs_from_reply(reply[0])
    errors = {refusal.run.id: refusal.error for refusal in handing.refused}
    refused = [Refusal(run, errors[run.id]) for run in await looking.whole(errors)]
    return Pulled(handed, refused, await looking.whole(run.id for run in handing.blocked))


class _Looking:
    """Shows due items page by page, each once. `known` is what is known of the subjects of all that were shown."""

    def __init__(self, link: Link, pull: Pull) -> None:
        self._link = link
        self._wish = wish_args(pull)
        self._count = max(pull.limit, _PAGE)
        types: list[str | None] = [*_types(pull)] or [None]
        self._last: dict[_Set, Run | None] = {(priority, type): None for priority in sorted(Priority) for type in types}
        self._values: dict[int, bytes] = {}
        self.known: dict[str, Known] = {}
        self.is_over = False

    async def next(self) -> list[Run]:
        values, told = await self._link.run(LOOK_AT_ITEMS, *self._wish, self._count, *self._places())
        self.is_over = len(values) < self._count
        for subject, *known in zip(told[::4], told[1::4], told[2::4], told[3::4], strict=True):
            self.known.setdefault(subject.decode(), _known(*known))
        fresh: list[Run] = []
        for value in values:
            run = run_from_value(value, None)
            key = (run.priority, run.step)
            self._last[key if key in self._last else (run.priority, None)] = run
            if run.id not in self._values:
                self._values[run.id] = value
                fresh.append(run)
        return fresh

    def _places(self) -> Iterator[Any]:
        for last in self._last.values():
            yield from ("", "") if last is None else (to_micros(last.due_at), f"{last.id:016}")

    async def whole(self, ids: Iterable[int]) -> list[Run]:
        """Those of the runs that were shown, with their inputs."""
        return await with_inputs(self._link, [self._values[id] for id in ids])


def _known(governed: bytes | None, held: int, busy: bytes | None) -> Known:
    return Known(None if governed is None else object_from_value(governed), held, _busy_until(busy))


def _busy_until(score: bytes | None) -> datetime | None:
    return None if score is None else from_micros(int(float(score)))


def _args(pull: Pull, seen: Seen, looking: _Looking, handing: HandingOut) -> list[Any]:
    version = 0 if seen.settings is None else seen.settings.version
    args: list[Any] = [pull.queue, seen.pulls, version]
    args += (pull.holder, to_micros(pull.until), to_micros(pull.begun_at))
    subjects = {run.subject for run in handing.handed if run.subject is not None}
    args.append(len(subjects))
    for subject in subjects:
        governed = looking.known[subject].governed
        args += (subject, 0 if governed is None else governed.version)
    args.append(len(handing.handed))
    for run in handing.handed:
        # It was looked at one move ago.
        args += (run.id, run.epoch - 1)
    args += objects_args(handing.objects.values())
    args.append(len(handing.buckets))
    for subject, until in handing.buckets.items():
        args += (subject, to_micros(until))
    return args
