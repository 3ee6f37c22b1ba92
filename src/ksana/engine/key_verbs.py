"""What operators do to API keys: make and revoke them; each leaves an entry in the audit."""

from __future__ import annotations

import logging
from datetime import datetime
from typing import Any

from ksana.domain.errors import StoreUnavailable
from ksana.domain.keys import StoredKey
from ksana.domain.ports import Store
from ksana.engine.auditing import Actor, Auditor
from ksana.engine.draws import IdPool

KEY = "key"

log = logging.getLogger(__name__)


async def add_key(store: Store, key: StoredKey, actor: Actor) -> None:
    """Keep a new key."""
    await store.add_key(key)
    told: dict[str, Any] = {"name": key.name, "scopes": sorted(key.scopes)}
    await _enter(store, "key.create", key.id, actor, key.created_at, after=told)


async def revoke_key(store: Store, key_id: str, now: datetime, actor: Actor) -> bool:
    """Let a key open nothing any more; answer whether there was one that did."""
    if not await store.revoke_key(key_id, now):
        return False
    await _enter(store, "key.revoke", key_id, actor, now)
    return True


async def _enter(
    store: Store, action: str, key_id: str, actor: Actor, now: datetime, after: dict[str, Any] | None = None
) -> None:
    auditor = Auditor(IdPool(store, "audit"))
    try:
        await store.add_audit([await auditor.entry(actor, action, KEY, key_id, now, after=after)])
    except StoreUnavailable as error:
        # The key is there by now: whoever made it has to be shown its secret, which nobody can tell them later.
        log.error("%s of key %s by %s is done, but not in the audit: %s", action, key_id, actor.name, error.message)
