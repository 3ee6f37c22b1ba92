"""The audit: kept entry by entry and found again the newest first."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable

from ksana.domain.audit import AuditEntry, AuditQuery
from ksana.domain.queries import Page
from ksana.stores.governed_search import asks_for_more, entry_fits
from ksana.stores.json.tables import Tables
from ksana.stores.json.tx import Tx


def add_audit(tx: Tx, entries: Iterable[AuditEntry]) -> None:
    for entry in entries:
        if entry.id not in tx.tables.audit.rows:
            tx.put(tx.tables.audit, entry.id, entry)


def find_audit(tables: Tables, query: AuditQuery) -> Page[AuditEntry]:
    audit = tables.audit
    ids: list[int] = audit.ids
    if query.subject is not None and query.subject_id is not None:
        ids = audit.of[query.subject, query.subject_id]
    if asks_for_more(query):
        ids = [id for id in ids if entry_fits(audit.rows[id], query)]
    end = len(ids) if query.before_id is None else bisect_left(ids, query.before_id)
    last = max(0, end - query.offset)
    return Page([audit.rows[id] for id in ids[max(0, last - query.limit) : last][::-1]], len(ids))
