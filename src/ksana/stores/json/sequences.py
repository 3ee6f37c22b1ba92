"""Small rising ids, and who the store is."""

from __future__ import annotations

import msgspec

from ksana.stores.json.tx import Tx


def reserve(tx: Tx, what: str, count: int) -> range:
    standing = tx.tables.stands
    start = standing.next_ids.get(what, 1)
    next_ids = {**standing.next_ids, what: start + count}
    tx.stand(msgspec.structs.replace(standing, next_ids=next_ids))
    return range(start, start + count)


def identity(tx: Tx) -> int:
    """The number drawn for this store; from here on it stays."""
    tx.stand(tx.tables.stands)
    return tx.tables.stands.identity
