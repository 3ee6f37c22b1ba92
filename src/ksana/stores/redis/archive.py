"""Whole stores in and out, page by page, for copies between stores. A section is one line of `_ROOMS`, but for runs and
attempts, which are found by way of the sets the runs stand in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ksana.domain.archive import Exported, Extent, Key, Section, Standing, key_at, key_of, place_of
from ksana.domain.callbacks import CallbackRecord, Progress
from ksana.domain.idempotency import IdempotencyRecord
from ksana.domain.jobs import Job
from ksana.domain.queries import Minute
from ksana.domain.runs import Attempt, Run
from ksana.domain.states import State
from ksana.domain.times import from_micros, to_micros
from ksana.stores.redis import shelves
from ksana.stores.redis.alert_values import alert_args, alert_from_value, alert_key, alert_key_parts
from ksana.stores.redis.attempt_values import attempt_from_parts, attempt_to_parts
from ksana.stores.redis.codes import FAMILIES, STATES
from ksana.stores.redis.governed_values import (
    entry_args,
    entry_from_value,
    object_args,
    object_from_value,
    object_key,
    object_key_parts,
    settings_to_value,
)
from ksana.stores.redis.job_values import job_from_value, job_to_value, resume_arg
from ksana.stores.redis.kept import kept_args, kept_from_value
from ksana.stores.redis.keys import all_keys
from ksana.stores.redis.link import Link
from ksana.stores.redis.queue_settings import queue_settings
from ksana.stores.redis.scripts import EXPORT, EXPORT_ATTEMPTS, PAGE_RUNS, RESTORE, TAKE_ON
from ksana.stores.redis.search import Range, range_args, surfaces
from ksana.stores.redis.values import fitting, run_to_value, runs_from_reply

_PAGE_BYTES = 8 << 20
"""Bodies may be megabytes: a page that would hold more than this ends early."""

_SEQUENCES = ("job", "run", "node", "callback", "audit")
_NO_EPOCH = 1 << 62


class _Room(NamedTuple):
    """Where the things of a section stand in order, and how a key is spelt there."""

    order: str
    spelt: Callable[..., str]
    read: Callable[[bytes], Key]
    value: Callable[[bytes, bytes], Any]
    args: Callable[[Any], Sequence[Any]]


def _spelt_id(id: int) -> str:
    return str(id)


def _read_id(name: bytes) -> Key:
    return (int(name.partition(b":")[0]),)


def _job_args(job: Job) -> Sequence[Any]:
    return job.id, job_to_value(job), resume_arg(job)


def _callback_args(record: CallbackRecord) -> Sequence[Any]:
    return record.id, record.run_id, shelves.callback_to_value(record)


def _progress_args(progress: Progress) -> Sequence[Any]:
    return progress.run_id, shelves.progress_to_value(progress)


def _minute_args(minute: Minute) -> Sequence[Any]:
    key = shelves.minute_key(to_micros(minute.minute_at), minute.kind, minute.state.value)
    return key, shelves.minute_to_value(minute)


def _record_args(record: IdempotencyRecord) -> Sequence[Any]:
    return shelves.answer_args(record)


_ROOMS: dict[Section, _Room] = {
    Section.JOBS: _Room("jobs", _spelt_id, _read_id, lambda _, value: job_from_value(value), _job_args),
    Section.CALLBACKS: _Room(
        "callbacks", _spelt_id, _read_id, lambda _, value: shelves.decode_callback(value), _callback_args
    ),
    Section.PROGRESS: _Room(
        "progress:order", _spelt_id, _read_id, lambda _, value: shelves.decode_progress(value), _progress_args
    ),
    Section.KEPT: _Room("kept", _spelt_id, _read_id, kept_from_value, kept_args),
    Section.ALERTS: _Room(
        "alerts:order", alert_key, lambda key: alert_key_parts(key.decode()), alert_from_value, alert_args
    ),
    Section.GAPS: _Room(
        "gaps:order",
        shelves.gap_key,
        lambda key: shelves.gap_key_parts(key.decode()),
        lambda _, value: shelves.decode_gap(value),
        shelves.gap_args,
    ),
    Section.MINUTES: _Room(
        "minutes:order",
        shelves.minute_key,
        lambda key: shelves.minute_key_parts(key.decode()),
        shelves.minute_from,
        _minute_args,
    ),
    Section.RECORDS: _Room(
        "answers:order",
        shelves.answer_key,
        lambda key: shelves.answer_key_parts(key.decode()),
        lambda _, value: shelves.decode_answer(value),
        _record_args,
    ),
    Section.OBJECTS: _Room(
        "objects:order",
        object_key,
        lambda key: object_key_parts(key.decode()),
        lambda _, value: object_from_value(value),
        object_args,
    ),
    Section.AUDIT: _Room("audit:order", _spelt_id, _read_id, lambda _, value: entry_from_value(value), entry_args),
}


# How much there is


async def extent(link: Link, section: Section) -> Extent:
    match section:
        case Section.STANDING:
            return Extent(1, place_of(()))
        case Section.KEYS:
            ids = sorted(id.decode() for id in await link.ask("HKEYS", link.key("keys")))
            return Extent(len(ids), place_of((ids[-1],)) if ids else None)
        case Section.QUEUES:
            known = await queue_settings(link)
            return Extent(len(known), place_of((known[-1].queue,)) if known else None)
        case Section.RUNS:
            total, last, _ = await _page_runs(link, "-inf", 1, descending=True)
            return Extent(total, place_of((last[0].id,)) if last else None)
        case Section.ATTEMPTS:
            return await _extent_of_attempts(link)
    order = link.key(_ROOMS[section].order)
    last_names = await link.ask("ZRANGE", order, -1, -1)
    last_place = place_of(_ROOMS[section].read(last_names[0])) if last_names else None
    return Extent(await link.ask("ZCARD", order), last_place)


async def _extent_of_attempts(link: Link) -> Extent:
    count = int(await link.ask("HGET", link.key("tallies"), "attempts") or 0)
    last = (await _attempts(link, None, 1, descending=True)).items if count else []
    return Extent(count, place_of(key_of(Section.ATTEMPTS, last[0])) if last else None)


# Out


async def export(link: Link, section: Section, after: str | None, limit: int) -> Exported:
    key = None if after is None else key_at(after)
    match section:
        case Section.STANDING:
            return Exported([await standing(link)] if key is None else [], None)
        case Section.KEYS:
            known = sorted(await all_keys(link), key=lambda one: one.id)
            left = [one for one in known if key is None or (one.id,) > key]
            return _exported(section, left[:limit], len(left) <= limit)
        case Section.QUEUES:
            rest = [one for one in await queue_settings(link) if key is None or (one.queue,) > key]
            return _exported(section, rest[:limit], len(rest) <= limit)
        case Section.RUNS:
            return await _runs(link, key, limit)
        case Section.ATTEMPTS:
            return await _attempts(link, key, limit)
    room = _ROOMS[section]
    spelt = "" if key is None else room.spelt(*key)
    found, is_all = await link.run(EXPORT, room.order.removesuffix(":order"), spelt, limit, _PAGE_BYTES)
    items = [room.value(name, value) for name, value in zip(found[::2], found[1::2], strict=True)]
    return _exported(section, items, bool(is_all))


def _exported(section: Section, items: list[Any], is_all: bool) -> Exported:
    return Exported(items, None if is_all or not items else place_of(key_of(section, items[-1])))


async def standing(link: Link) -> Standing:
    told: dict[bytes, bytes] = await link.ask("HGETALL", link.key("standing"))
    ids: dict[bytes, bytes] = await link.ask("HGETALL", link.key("ids"))
    rolled = told.get(b"rolled")
    return Standing(
        identity=int(told[b"identity"]),
        next_ids=dict.fromkeys(_SEQUENCES, 1) | {name.decode(): int(last) + 1 for name, last in ids.items()},
        rolled_until=None if rolled is None else from_micros(int(rolled)),
    )


async def _ranges(link: Link, low: Any) -> list[Range]:
    """All runs from an id on, whatever has become of them."""
    groups = [f"{STATES[state]}{family}" for state in State for family in FAMILIES]
    return [(f"state:{group}{surface}", low, "+inf") for surface in await surfaces(link) for group in groups]


async def _page_runs(link: Link, low: Any, limit: int, *, descending: bool = False) -> tuple[int, list[Run], bool]:
    counted, shown = range_args(await _ranges(link, "-inf")), range_args(await _ranges(link, low))
    total, reply, is_all = await link.run(PAGE_RUNS, 0, limit, _PAGE_BYTES, int(descending), *counted, *shown)
    return total, runs_from_reply(reply), bool(is_all)


async def _runs(link: Link, after: Key | None, limit: int) -> Exported:
    _, runs, is_all = await _page_runs(link, "-inf" if after is None else f"({after[0]}", limit)
    return _exported(Section.RUNS, runs, is_all)


async def _attempts(link: Link, after: Key | None, limit: int, *, descending: bool = False) -> Exported:
    run_id, epoch = after or (-1, -1)
    low: Any = "-inf" if after is None else run_id
    while True:
        ranges = [*await _ranges(link, low), ("strays", low, "+inf")]
        page = (int(descending), run_id, epoch, limit, _PAGE_BYTES)
        found, last = await link.run(EXPORT_ATTEMPTS, *page, *range_args(ranges))
        if found or last is None:
            break
        low = run_id = int(last)
        epoch = _NO_EPOCH
    items = [_attempt(*found[at : at + 5]) for at in range(0, len(found), 5)]
    return _exported(Section.ATTEMPTS, items, last is None)


def _attempt(run_id: bytes, epoch: bytes, told: bytes, sent: bytes | None, received: bytes | None) -> Attempt:
    return attempt_from_parts(int(run_id), int(epoch), told, sent, received)


# In


async def restore(link: Link, section: Section, items: Sequence[Any]) -> int:
    if section is Section.STANDING:
        return sum([await _take_on(link, one) for one in items])
    if not items:
        return 0
    with fitting():
        args = [part for item in items for part in _restored(section, item)]
    new: int = await link.run(RESTORE, section.value, len(items), *args)
    return new


def _restored(section: Section, item: Any) -> Sequence[Any]:
    match section:
        case Section.KEYS:
            return item.id, shelves.encode(item)
        case Section.QUEUES:
            return item.queue, settings_to_value(item)
        case Section.RUNS:
            return run_to_value(item), item.input or b""
        case Section.ATTEMPTS:
            return item.run_id, *attempt_to_parts(item)
        case _:
            return _ROOMS[section].args(item)


async def _take_on(link: Link, new: Standing) -> int:
    rolled = "" if new.rolled_until is None else to_micros(new.rolled_until)
    sequences = [part for name, next_id in new.next_ids.items() for part in (name, next_id - 1)]
    changed: int = await link.run(TAKE_ON, new.identity, rolled, len(new.next_ids), *sequences)
    return changed
