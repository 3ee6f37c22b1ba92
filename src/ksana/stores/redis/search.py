"""Filters, sorting and paging: by the sets that answer a question as it is, else by looking at what they hold."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from msgspec.structs import replace

from ksana.domain.jobs import Job
from ksana.domain.queries import JobQuery, Page, RunQuery, RunSort
from ksana.domain.runs import Run
from ksana.domain.states import State
from ksana.domain.times import to_micros
from ksana.stores.redis.codes import FAMILIES, FINAL_LETTERS, STATES
from ksana.stores.redis.job_values import job_from_value
from ksana.stores.redis.link import Link
from ksana.stores.redis.scripts import LIST_IDS, PAGE_RUNS
from ksana.stores.redis.values import has_input, run_from_value, runs_from_reply

T = TypeVar("T", Job, Run)
Test = Callable[[Any], bool]
Range = tuple[str, Any, Any]
"""A set, and the lowest and highest score that count."""

_CHUNK = 1000
# So many are read sooner than counted.
_FEW = 1000
ALL = ("-inf", "+inf")


def range_args(ranges: Sequence[Range]) -> list[Any]:
    return [len(ranges), *(part for one in ranges for part in one)]


async def surfaces(link: Link) -> list[str]:
    return sorted(name.decode() for name in await link.ask("SMEMBERS", link.key("surfaces")))


async def values_of(link: Link, kind: str, ids: Sequence[bytes]) -> list[bytes]:
    """The values behind these ids, as far as they are still there; in pieces, so that nobody waits long."""
    found: list[bytes] = []
    for start in range(0, len(ids), _CHUNK):
        keys = [link.key(f"{kind}:{id.decode()}") for id in ids[start : start + _CHUNK]]
        found += [value for value in await link.ask("MGET", *keys) if value is not None]
    return found


async def values_in(link: Link, name: str, keys: Sequence[str | bytes]) -> list[bytes]:
    """The values of a hash under these keys, as far as they are there; in pieces, so that nobody waits long."""
    found: list[bytes] = []
    for start in range(0, len(keys), _CHUNK):
        values = await link.ask("HMGET", link.key(name), *keys[start : start + _CHUNK])
        found += [value for value in values if value is not None]
    return found


def page_of(found: list[T], sort: str, by_id: bool, query: JobQuery | RunQuery) -> list[T]:
    """Sorted by a field, then by id; what has no value comes last, whichever way the list runs."""
    if by_id:
        found.sort(key=lambda one: one.id, reverse=query.descending)
    else:
        there = [one for one in found if getattr(one, sort) is not None]
        rest = [one for one in found if getattr(one, sort) is None]
        there.sort(key=lambda one: (getattr(one, sort), one.id), reverse=query.descending)
        rest.sort(key=lambda one: one.id, reverse=query.descending)
        found = there + rest
    return found[query.offset : query.offset + query.limit]


async def find_runs(link: Link, query: RunQuery) -> Page[Run]:
    of = await surfaces(link) if query.surface is None else [query.surface]
    if (ranges := _exact_ranges(query, of)) is not None:
        page = (query.offset, query.limit, 0, int(query.descending))
        counted, shown = ranges
        total, reply, _ = await link.run(PAGE_RUNS, *page, *range_args(counted), *range_args(shown))
        return Page(runs_from_reply(reply), total)
    tests = await _run_tests(link, query)
    ids = await link.run(LIST_IDS, *range_args(await _narrowest(link, query, of)))
    values = {value: run_from_value(value, None) for value in await values_of(link, "run", ids)}
    found = {run.id: value for value, run in values.items() if all(test(run) for test in tests)}
    total = len(found)
    left = [values[found[id]] for id in found if _is_between(id, query)]
    items = page_of(left, query.sort.value, query.sort is RunSort.ID, query)
    return Page(await with_inputs(link, [found[run.id] for run in items]), total)


def _is_between(id: int, query: RunQuery) -> bool:
    is_before = query.before_id is None or id < query.before_id
    return is_before and (query.after_id is None or id > query.after_id)


async def with_inputs(link: Link, values: Sequence[bytes]) -> list[Run]:
    """Runs from their values, with the inputs that are kept apart."""
    runs = [run_from_value(value, None) for value in values]
    ids = [run.id for run, value in zip(runs, values, strict=True) if has_input(value)]
    inputs: dict[int, bytes | None] = {}
    for start in range(0, len(ids), _CHUNK):
        some = ids[start : start + _CHUNK]
        inputs |= zip(some, await link.ask("MGET", *[link.key(f"input:{id}") for id in some]), strict=True)
    return [replace(run, input=inputs.get(run.id)) for run in runs]


def _letters(states: Iterable[State]) -> str:
    return "".join(STATES[state] for state in (states or State))


def _families(query: RunQuery) -> Sequence[str]:
    if query.parent_id is not None:
        return FAMILIES[1:]
    return FAMILIES if query.is_child is None else (FAMILIES[query.is_child],)


def _exact_ranges(query: RunQuery, of: Sequence[str]) -> tuple[list[Range], list[Range]] | None:
    """What to count and what to show, if sets answer the question as it is."""
    if query.kind is not None or query.tag is not None or query.job_name or query.reasons:
        return None
    if query.queue is not None or query.steps or query.holder is not None or query.error:
        return None
    if query.planned_since is not None or query.planned_until is not None:
        return None
    has_span = query.since is not None or query.until is not None
    if query.sort is RunSort.ID and not has_span:
        keys = _keys_by_id(query, of)
        first, last = ALL
        shown = (
            first if query.after_id is None else f"({query.after_id}",
            last if query.before_id is None else f"({query.before_id}",
        )
        return None if keys is None else ([(key, *ALL) for key in keys], [(key, *shown) for key in keys])
    letters = _letters(query.states)
    is_over = all(letter in FINAL_LETTERS for letter in letters)
    is_everywhere = query.job_id is query.parent_id is query.before_id is query.after_id is None
    if query.sort is RunSort.ENDED and is_over and is_everywhere and query.subject is None:
        ranges = [
            (f"ended:{letter}{family}{surface}", *_span(query))
            for letter in letters
            for family in _families(query)
            for surface in of
        ]
        return ranges, ranges
    return None


def _keys_by_id(query: RunQuery, of: Sequence[str]) -> list[str] | None:
    if query.subject is not None:
        others = (query.job_id, query.parent_id, query.surface, query.is_child)
        is_alone = not query.states and all(asked is None for asked in others)
        return [f"about:{query.subject}"] if is_alone else None
    if query.job_id is not None:
        if query.states or query.surface is not None or query.parent_id is not None or query.is_child is not None:
            return None
        return _keys_of_job(query.job_id)
    if query.parent_id is not None:
        is_exact = not query.states and query.surface is None and query.is_child is not False
        return [f"children:{query.parent_id}"] if is_exact else None
    return _keys_of_states(query, of)


def _keys_of_job(job_id: int) -> list[str]:
    return [f"live:{job_id}", *(f"final:{letter}{job_id}" for letter in FINAL_LETTERS)]


def _keys_of_states(query: RunQuery, of: Sequence[str]) -> list[str]:
    return [
        f"state:{letter}{family}{surface}"
        for letter in _letters(query.states)
        for family in _families(query)
        for surface in of
    ]


def _span(query: RunQuery) -> tuple[Any, Any]:
    low = "-inf" if query.since is None else to_micros(query.since)
    high = "+inf" if query.until is None else f"({to_micros(query.until)}"
    return low, high


def _ranges_around(query: RunQuery, of: Sequence[str]) -> list[Range]:
    """The narrowest sets that hold all that fits."""
    if query.job_id is not None:
        return [(key, *ALL) for key in _keys_of_job(query.job_id)]
    if query.parent_id is not None:
        return [(f"children:{query.parent_id}", *ALL)]
    if query.subject is not None:
        return [(f"about:{query.subject}", *ALL)]
    ranges: list[Range] = []
    has_span = query.since is not None or query.until is not None
    for letter in _letters(query.states):
        for family in _families(query):
            for surface in of:
                if has_span and letter in FINAL_LETTERS:
                    ranges.append((f"ended:{letter}{family}{surface}", *_span(query)))
                else:
                    ranges.append((f"state:{letter}{family}{surface}", *ALL))
    return ranges


async def _narrowest(link: Link, query: RunQuery, of: Sequence[str]) -> list[Range]:
    """The narrowest sets that hold all that fits. Of a job with a long history they are those of what ended in the span
    that is asked for, whichever job it was of, if these are fewer."""
    around = _ranges_around(query, of)
    if query.job_id is None or (query.since is None and query.until is None):
        return around
    size = await _size(link, around)
    if size <= _FEW:
        return around
    in_span = [one for one in _ranges_around(replace(query, job_id=None), of) if one[0].startswith("ended:")]
    in_span.append((f"live:{query.job_id}", *ALL))
    return in_span if await _size(link, in_span) < size else around


async def _size(link: Link, ranges: Sequence[Range]) -> int:
    return sum([await link.ask("ZCOUNT", link.key(key), low, high) for key, low, high in ranges])


async def _run_tests(link: Link, query: RunQuery) -> list[Test]:
    tests: list[Test] = []
    if query.surface is not None:
        tests.append(lambda run: run.surface == query.surface)
    if query.job_id is not None:
        tests.append(lambda run: run.job_id == query.job_id)
    if query.parent_id is not None:
        tests.append(lambda run: run.parent_id == query.parent_id)
    if query.is_child is not None:
        tests.append(lambda run: (run.parent_id is not None) == query.is_child)
    if query.states:
        tests.append(lambda run: run.state in query.states)
    if query.reasons:
        tests.append(lambda run: run.reason in query.reasons)
    if query.kind is not None:
        tests.append(lambda run: run.kind == query.kind)
    if query.queue is not None:
        tests.append(lambda run: run.queue == query.queue)
    if query.steps:
        tests.append(lambda run: run.step in query.steps)
    if query.holder is not None:
        tests.append(lambda run: run.holder == query.holder)
    if query.subject is not None:
        tests.append(lambda run: run.subject == query.subject)
    if query.error:
        tests.append(lambda run: query.error in run.error)
    if query.tag is not None or query.job_name:
        tests.append(await _job_test(link, query))
    since, until = query.since, query.until
    if since is not None:
        tests.append(lambda run: (run.ended_at or run.due_at) >= since)
    if until is not None:
        tests.append(lambda run: (run.ended_at or run.due_at) < until)
    planned_since, planned_until = query.planned_since, query.planned_until
    if planned_since is not None:
        tests.append(lambda run: run.planned_at >= planned_since)
    if planned_until is not None:
        tests.append(lambda run: run.planned_at <= planned_until)
    return tests


async def _job_test(link: Link, query: RunQuery) -> Test:
    """Whether the run's job has the tag and the name asked for; a deleted job has no tags left."""
    part = query.job_name.casefold()
    ids = await link.run(LIST_IDS, *range_args([("jobs", *ALL)]))
    fitting = {
        job.id
        for job in map(job_from_value, await values_of(link, "job", ids))
        if part in job.name.casefold() and (query.tag is None or (job.deleted_at is None and query.tag in job.tags))
    }
    return lambda run: run.job_id in fitting
