"""API keys."""

from __future__ import annotations

from datetime import datetime

import msgspec

from ksana.domain.errors import AlreadyExists
from ksana.domain.keys import StoredKey
from ksana.stores.json.tables import Tables
from ksana.stores.json.tx import Tx


def add(tx: Tx, key: StoredKey) -> None:
    if key.id in tx.tables.keys.rows:
        raise AlreadyExists(f"there is a key {key.id} already")
    tx.put(tx.tables.keys, key.id, key)


def all_keys(tables: Tables) -> list[StoredKey]:
    return sorted(tables.keys.rows.values(), key=lambda key: (key.created_at, key.id))


def revoke(tx: Tx, key_id: str, now: datetime) -> bool:
    key = tx.tables.keys.get(key_id)
    if key is None or key.revoked_at is not None:
        return False
    tx.put(tx.tables.keys, key_id, msgspec.structs.replace(key, revoked_at=now))
    return True
