"""Filters, sorting and paging. The store pages; nobody ever reads everything to show a little."""

from __future__ import annotations

from ksana.domain.jobs import Job
from ksana.domain.queries import JobQuery, JobSort, Page, RunQuery, RunSort
from ksana.domain.runs import Run
from ksana.domain.states import FINAL
from ksana.domain.times import to_micros
from ksana.stores.sql.job_rows import job_from_row
from ksana.stores.sql.paging import count, page
from ksana.stores.sql.run_rows import run_from_row
from ksana.stores.sql.statements import JOB_COLUMNS, JOB_SOURCE
from ksana.stores.sql.tables import RUNS
from ksana.stores.sql.tx import Tx
from ksana.stores.sql.where import Where

_NULLABLE = frozenset({"c.next_fire_at", "r.ended_at"})

_JOB_SORTS = {
    JobSort.ID: "j.id",
    JobSort.NAME: "j.name",
    JobSort.UPDATED: "j.updated_at",
    JobSort.NEXT: "c.next_fire_at",
}


async def find_jobs(tx: Tx, query: JobQuery) -> Page[Job]:
    where = _job_conditions(query)
    total = await count(tx, JOB_SOURCE, where)
    order = _order(_JOB_SORTS[query.sort], "j.id", query.descending)
    rows = await page(tx, JOB_COLUMNS, JOB_SOURCE, where, order, query)
    return Page([job_from_row(row) for row in rows], total)


def _order(column: str, key: str, descending: bool, *, is_whole: bool = False) -> str:
    """Sort by a column, then by the key; what has no value comes last, whichever way the list runs. If there is no such
    thing, the list `is_whole`."""
    direction = "DESC" if descending else "ASC"
    if column == key:
        return f"{key} {direction}"
    empty_last = f"CASE WHEN {column} IS NULL THEN 1 ELSE 0 END, " if column in _NULLABLE and not is_whole else ""
    return f"{empty_last}{column} {direction}, {key} {direction}"


def _job_conditions(query: JobQuery) -> Where:
    where = Where("j.deleted_at IS NULL")
    if query.surface is not None:
        where.add("j.surface = :surface", surface=query.surface)
    if query.name:
        where.add("{position}(j.folded_name, :name) > 0", name=query.name.casefold())
    if query.exact_name is not None:
        where.add("j.name = :exact_name", exact_name=query.exact_name)
    if query.ref is not None:
        where.add("j.ref = :ref", ref=query.ref)
    if query.kind is not None:
        where.add("j.kind = :kind", kind=query.kind)
    if query.enabled is not None:
        where.add("j.enabled = :enabled", enabled=int(query.enabled))
    if query.tag is not None:
        where.add("EXISTS (SELECT 1 FROM ksana_tags t WHERE t.job_id = j.id AND t.tag = :tag)", tag=query.tag)
    return where


_RUN_SORTS = {RunSort.ID: "r.id", RunSort.DUE: "r.due_at", RunSort.ENDED: "r.ended_at"}
_RUN_COLUMNS = ", ".join(f"r.{name}" for name in RUNS.names)


async def find_runs(tx: Tx, query: RunQuery) -> Page[Run]:
    where = _run_conditions(query)
    source = "FROM ksana_runs r" if query.subject is None else "FROM ksana_runs r {by_subject}"
    total = await count(tx, source, where) if query.counted else None
    if query.before_id is not None:
        where.add("r.id < :before_id", before_id=query.before_id)
    if query.after_id is not None:
        where.add("r.id > :after_id", after_id=query.after_id)
    order = _order(_RUN_SORTS[query.sort], "r.id", query.descending, is_whole=_are_over(query))
    rows = await page(tx, _RUN_COLUMNS, source, where, order, query)
    return Page([run_from_row(row) for row in rows], len(rows) if total is None else total)


def _are_over(query: RunQuery) -> bool:
    """Whether only runs are asked for that have ended."""
    return bool(query.states) and query.states <= FINAL


def _run_conditions(query: RunQuery) -> Where:
    where = Where()
    if query.surface is not None:
        where.add("r.surface = :surface", surface=query.surface)
    if query.job_id is not None:
        where.add("r.job_id = :job_id", job_id=query.job_id)
    if query.parent_id is not None:
        where.add("r.parent_id = :parent_id", parent_id=query.parent_id)
    if query.is_child is not None:
        where.add(f"r.parent_id IS {'NOT ' if query.is_child else ''}NULL")
    if query.states:
        where.add("r.state IN (:states*)", states=sorted(query.states))
    if query.reasons:
        # No reason is NULL, which no list contains.
        where.add("COALESCE(r.reason, '') IN (:reasons*)", reasons=sorted(reason or "" for reason in query.reasons))
    if query.kind is not None:
        where.add("r.kind = :kind", kind=query.kind)
    if query.queue is not None:
        where.add("r.queue = :queue", queue=query.queue)
    if query.steps:
        where.add("r.step IN (:steps*)", steps=sorted(query.steps))
    if query.subject is not None:
        where.add("r.subject = :subject", subject=query.subject)
    if query.holder is not None:
        where.add("r.holder = :holder", holder=query.holder)
    if query.error:
        where.add("{position}(r.error, :error) > 0", error=query.error)
    if query.tag is not None:
        where.add("EXISTS (SELECT 1 FROM ksana_tags t WHERE t.job_id = r.job_id AND t.tag = :tag)", tag=query.tag)
    if query.job_name:
        where.add(
            "EXISTS (SELECT 1 FROM ksana_jobs j WHERE j.id = r.job_id AND {position}(j.folded_name, :job_name) > 0)",
            job_name=query.job_name.casefold(),
        )
    at = "COALESCE(r.ended_at, r.due_at)"
    if _are_over(query):
        # Said aloud, because the index of what has ended holds nothing else.
        where.add("r.ended_at IS NOT NULL")
        at = "r.ended_at"
    if query.since is not None:
        where.add(f"{at} >= :since", since=to_micros(query.since))
    if query.until is not None:
        where.add(f"{at} < :until", until=to_micros(query.until))
    if query.planned_since is not None:
        where.add("COALESCE(r.slot_at, r.created_at) >= :planned_since", planned_since=to_micros(query.planned_since))
    if query.planned_until is not None:
        where.add("COALESCE(r.slot_at, r.created_at) <= :planned_until", planned_until=to_micros(query.planned_until))
    return where
