"""The audit: entries are added with what they tell of, found by what they are about, and never changed."""

from __future__ import annotations

from collections.abc import Sequence

from ksana.domain.audit import AuditEntry, AuditQuery
from ksana.domain.queries import Page
from ksana.domain.times import to_micros
from ksana.stores.sql.governed_rows import entry_from_row, entry_to_row
from ksana.stores.sql.governed_statements import AUDIT
from ksana.stores.sql.paging import count, page
from ksana.stores.sql.tx import Tx
from ksana.stores.sql.where import Where

_SOURCE = "FROM ksana_audit"


async def add_audit(tx: Tx, entries: Sequence[AuditEntry]) -> int:
    """Keep entries that are new; answer how many were."""
    return await tx.insert_new(AUDIT, [entry_to_row(entry) for entry in entries]) if entries else 0


async def find_audit(tx: Tx, query: AuditQuery) -> Page[AuditEntry]:
    where = _conditions(query)
    total = await count(tx, _SOURCE, where)
    if query.before_id is not None:
        where.add("id < :before_id", before_id=query.before_id)
    rows = await page(tx, ", ".join(AUDIT.names), _SOURCE, where, "id DESC", query)
    return Page([entry_from_row(row) for row in rows], total)


def _conditions(query: AuditQuery) -> Where:
    where = Where()
    for name in ("subject", "subject_id", "actor", "action"):
        if (wanted := getattr(query, name)) is not None:
            where.add(f"{name} = :{name}", **{name: wanted})
    if query.since is not None:
        where.add("at >= :since", since=to_micros(query.since))
    if query.until is not None:
        where.add("at < :until", until=to_micros(query.until))
    return where
