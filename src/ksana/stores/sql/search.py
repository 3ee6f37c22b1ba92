"""Filters, sorting and paging. The store pages; nobody ever reads everything to show a little."""

from __future__ import annotations

from typing import Any

from ksana.domain.jobs import Job
from ksana.domain.queries import JobQuery, JobSort, Page, RunQuery, RunSort
from ksana.domain.runs import Run
from ksana.domain.times import to_micros
from ksana.stores.sql.rows import job_from_row, run_from_row
from ksana.stores.sql.statements import RUNS, Statement
from ksana.stores.sql.tx import Tx


class _Where:
    """Conditions that all must hold, with their values."""

    def __init__(self, *conditions: str) -> None:
        self._conditions = list(conditions)
        self.values: dict[str, Any] = {}

    def add(self, condition: str, **values: Any) -> None:
        self._conditions.append(condition)
        self.values.update(values)

    def __str__(self) -> str:
        return f" WHERE {' AND '.join(self._conditions)}" if self._conditions else ""


_NULLABLE = frozenset({"c.next_fire_at", "r.ended_at"})

_JOB_SORTS = {
    JobSort.ID: "j.id",
    JobSort.NAME: "j.name",
    JobSort.UPDATED: "j.updated_at",
    JobSort.NEXT: "c.next_fire_at",
}


async def find_jobs(tx: Tx, query: JobQuery) -> Page[Job]:
    where = _job_conditions(query)
    source = f"FROM ksana_jobs j JOIN ksana_cursors c ON c.job_id = j.id{where}"
    total = await tx.rows(Statement(f"SELECT COUNT(*) {source}"), **where.values)
    rows = await tx.rows(
        Statement(
            f"SELECT j.id, j.definition, j.version, c.next_slot_at, c.next_fire_at {source}"
            f" ORDER BY {_order(_JOB_SORTS[query.sort], 'j.id', query.descending)} LIMIT :limit OFFSET :offset"
        ),
        **where.values,
        limit=query.limit,
        offset=query.offset,
    )
    return Page([job_from_row(row) for row in rows], total[0][0])


def _order(column: str, key: str, descending: bool) -> str:
    """Sort by a column, then by the key; what has no value comes last, whichever way the list runs."""
    direction = "DESC" if descending else "ASC"
    if column == key:
        return f"{key} {direction}"
    empty_last = f"CASE WHEN {column} IS NULL THEN 1 ELSE 0 END, " if column in _NULLABLE else ""
    return f"{empty_last}{column} {direction}, {key} {direction}"


def _job_conditions(query: JobQuery) -> _Where:
    where = _Where("j.deleted_at IS NULL")
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
    total = await tx.rows(Statement(f"SELECT COUNT(*) FROM ksana_runs r{where}"), **where.values)
    if query.before_id is not None:
        where.add("r.id < :before_id", before_id=query.before_id)
    rows = await tx.rows(
        Statement(
            f"SELECT {_RUN_COLUMNS} FROM ksana_runs r{where}"
            f" ORDER BY {_order(_RUN_SORTS[query.sort], 'r.id', query.descending)} LIMIT :limit OFFSET :offset"
        ),
        **where.values,
        limit=query.limit,
        offset=query.offset,
    )
    return Page([run_from_row(row) for row in rows], total[0][0])


def _run_conditions(query: RunQuery) -> _Where:
    where = _Where()
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
    if query.since is not None:
        where.add("COALESCE(r.ended_at, r.due_at) >= :since", since=to_micros(query.since))
    if query.until is not None:
        where.add("COALESCE(r.ended_at, r.due_at) < :until", until=to_micros(query.until))
    if query.planned_since is not None:
        where.add("COALESCE(r.slot_at, r.created_at) >= :planned_since", planned_since=to_micros(query.planned_since))
    if query.planned_until is not None:
        where.add("COALESCE(r.slot_at, r.created_at) <= :planned_until", planned_until=to_micros(query.planned_until))
    return where
