"""The audit, the newest entries first: found by what they are about or by their instant, else by looking at them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ksana.domain.audit import AuditEntry, AuditQuery
from ksana.domain.queries import Page
from ksana.domain.times import to_micros
from ksana.stores.governed_search import asks_for_more, entry_fits
from ksana.stores.redis.governed_values import entries_args, entry_about, entry_from_value
from ksana.stores.redis.link import Link
from ksana.stores.redis.scripts import ADD_AUDIT
from ksana.stores.redis.search import ALL, Range, values_in
from ksana.stores.redis.values import fitting

_CHUNK: Final = 500


async def add_audit(link: Link, entries: Sequence[AuditEntry]) -> None:
    if not entries:
        return
    with fitting():
        args = entries_args(entries)
    await link.run(ADD_AUDIT, *args)


async def find_audit(link: Link, query: AuditQuery) -> Page[AuditEntry]:
    name, low, high = _narrowest(query)
    key = link.key(name)
    if not asks_for_more(query):
        last = high if query.before_id is None else f"({query.before_id}"
        ids = await link.ask("ZREVRANGEBYSCORE", key, last, low, "LIMIT", query.offset, query.limit)
        return Page(await _entries(link, ids), await link.ask("ZCARD", key))
    ids = sorted(await link.ask("ZRANGEBYSCORE", key, low, high), key=int, reverse=True)
    total, behind, items = 0, 0, list[AuditEntry]()
    # Piece by piece: entries hold whole jobs, and all of them at once may be more than there is room for.
    for start in range(0, len(ids), _CHUNK):
        for entry in await _entries(link, ids[start : start + _CHUNK]):
            if not entry_fits(entry, query):
                continue
            total += 1
            if query.before_id is None or entry.id < query.before_id:
                behind += 1
                if query.offset < behind <= query.offset + query.limit:
                    items.append(entry)
    return Page(items, total)


def _narrowest(query: AuditQuery) -> Range:
    """The set that holds all that fits and the least besides."""
    if query.subject is not None and query.subject_id is not None:
        with fitting():
            return f"audit:of:{entry_about(query.subject, query.subject_id)}", *ALL
    if query.since is None and query.until is None:
        return "audit:order", *ALL
    low = "-inf" if query.since is None else to_micros(query.since)
    return "audit:at", low, "+inf" if query.until is None else f"({to_micros(query.until)}"


async def _entries(link: Link, ids: Sequence[bytes]) -> list[AuditEntry]:
    return [entry_from_value(value) for value in await values_in(link, "audit", ids)]
