"""Filters, sorting and paging over the tables, from the narrowest index that fits the question."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from ksana.domain.jobs import Job
from ksana.domain.queries import JobQuery, JobSort, Page, RunQuery, RunSort
from ksana.domain.runs import Run
from ksana.stores.json.tables import Tables

T = TypeVar("T", Job, Run)
Test = Callable[[Any], bool]


def find_jobs(tables: Tables, query: JobQuery) -> Page[Job]:
    tests = _job_tests(query)
    found = [job for job in _job_candidates(tables, query) if all(test(job) for test in tests)]
    return Page(_page(found, query.sort.value, query.sort is JobSort.ID, query), len(found))


def _job_candidates(tables: Tables, query: JobQuery) -> Iterable[Job]:
    jobs = tables.jobs
    if query.ref is not None and query.surface is not None:
        job_id = jobs.by_ref.get((query.surface, query.ref))
        return [] if job_id is None else [jobs.rows[job_id]]
    if query.exact_name is not None:
        return [jobs.rows[job_id] for job_id in jobs.by_name[query.exact_name]]
    return jobs.rows.values()


def _job_tests(query: JobQuery) -> list[Test]:
    tests: list[Test] = [lambda job: job.deleted_at is None]
    if query.surface is not None:
        tests.append(lambda job: job.surface == query.surface)
    if query.name:
        part = query.name.casefold()
        tests.append(lambda job: part in job.name.casefold())
    if query.exact_name is not None:
        tests.append(lambda job: job.name == query.exact_name)
    if query.ref is not None:
        tests.append(lambda job: job.ref == query.ref)
    if query.kind is not None:
        tests.append(lambda job: job.target.kind == query.kind)
    if query.enabled is not None:
        tests.append(lambda job: job.enabled == query.enabled)
    if query.tag is not None:
        tests.append(lambda job: query.tag in job.tags)
    return tests


def _page(found: list[T], sort: str, by_id: bool, query: JobQuery | RunQuery) -> list[T]:
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


def find_runs(tables: Tables, query: RunQuery) -> Page[Run]:
    ids, tests = _run_candidates(tables, query)
    rows = tables.runs.rows
    if not tests and query.sort is RunSort.ID:
        return Page([rows[run_id] for run_id in _slice(ids, query)], len(ids))
    found = [run for run in map(rows.__getitem__, ids) if all(test(run) for test in tests)]
    total = len(found)
    if query.before_id is not None:
        found = [run for run in found if run.id < query.before_id]
    if query.after_id is not None:
        found = [run for run in found if run.id > query.after_id]
    return Page(_page(found, query.sort.value, query.sort is RunSort.ID, query), total)


def _slice(ids: list[int], query: RunQuery) -> list[int]:
    """A page of all there is, found by counting."""
    begin = 0 if query.after_id is None else bisect_right(ids, query.after_id)
    end = len(ids) if query.before_id is None else bisect_left(ids, query.before_id)
    if query.descending:
        last = max(begin, end - query.offset)
        return ids[max(begin, last - query.limit) : last][::-1]
    first = begin + query.offset
    return ids[first : min(end, first + query.limit)]


def _run_candidates(tables: Tables, query: RunQuery) -> tuple[list[int], list[Test]]:
    """The ids, rising, in the narrowest index that fits, and what is left to be asked of each."""
    runs = tables.runs
    tests = _run_tests(tables, query)
    if query.job_id is not None:
        del tests["job_id"]
        ids: list[int] = runs.of_job[query.job_id]
    elif query.parent_id is not None:
        del tests["parent_id"]
        ids = runs.children[query.parent_id]
    elif query.subject is not None:
        del tests["subject"]
        ids = runs.about[query.subject]
    elif query.states:
        del tests["states"]
        ids = [run_id for state in query.states for run_id in runs.unfinished[state]]
        ids += [run_id for state in query.states for _, run_id in runs.ended[state]]
        ids.sort()
    else:
        ids = runs.ids
    return ids, list(tests.values())


def _run_tests(tables: Tables, query: RunQuery) -> dict[str, Test]:
    tests: dict[str, Test] = {}
    if query.surface is not None:
        tests["surface"] = lambda run: run.surface == query.surface
    if query.job_id is not None:
        tests["job_id"] = lambda run: run.job_id == query.job_id
    if query.parent_id is not None:
        tests["parent_id"] = lambda run: run.parent_id == query.parent_id
    if query.is_child is not None:
        tests["is_child"] = lambda run: (run.parent_id is not None) is query.is_child
    if query.states:
        tests["states"] = lambda run: run.state in query.states
    if query.reasons:
        tests["reasons"] = lambda run: run.reason in query.reasons
    if query.kind is not None:
        tests["kind"] = lambda run: run.kind == query.kind
    if query.queue is not None:
        tests["queue"] = lambda run: run.queue == query.queue
    if query.steps:
        tests["steps"] = lambda run: run.step in query.steps
    if query.holder is not None:
        tests["holder"] = lambda run: run.holder == query.holder
    if query.subject is not None:
        tests["subject"] = lambda run: run.subject == query.subject
    if query.error:
        tests["error"] = lambda run: query.error in run.error
    if query.tag is not None or query.job_name:
        tests["job"] = _job_test(tables, query)
    since, until = query.since, query.until
    if since is not None:
        tests["since"] = lambda run: (run.ended_at or run.due_at) >= since
    if until is not None:
        tests["until"] = lambda run: (run.ended_at or run.due_at) < until
    planned_since, planned_until = query.planned_since, query.planned_until
    if planned_since is not None:
        tests["planned_since"] = lambda run: run.planned_at >= planned_since
    if planned_until is not None:
        tests["planned_until"] = lambda run: run.planned_at <= planned_until
    return tests


def _job_test(tables: Tables, query: RunQuery) -> Test:
    """Whether the run's job has the tag and the name asked for; a deleted job has no tags left."""
    part = query.job_name.casefold()
    fitting = {
        job.id
        for job in tables.jobs.rows.values()
        if part in job.name.casefold() and (query.tag is None or (job.deleted_at is None and query.tag in job.tags))
    }
    return lambda run: run.job_id in fitting
