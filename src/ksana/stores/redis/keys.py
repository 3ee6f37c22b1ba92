"""API keys."""

from __future__ import annotations

from datetime import datetime

import msgspec

from ksana.domain.errors import AlreadyExists
from ksana.domain.keys import StoredKey
from ksana.stores.redis.link import Link
from ksana.stores.redis.scripts import REPLACE_KEY
from ksana.stores.redis.shelves import decode_key, encode
from ksana.stores.redis.values import fitting


async def add(link: Link, key: StoredKey) -> None:
    with fitting():
        value = encode(key)
    if not await link.ask("HSETNX", link.key("keys"), key.id, value):
        raise AlreadyExists(f"there is a key {key.id} already")


async def all_keys(link: Link) -> list[StoredKey]:
    found = map(decode_key, await link.ask("HVALS", link.key("keys")))
    return sorted(found, key=lambda key: (key.created_at, key.id))


async def revoke(link: Link, key_id: str, now: datetime) -> bool:
    while (value := await link.ask("HGET", link.key("keys"), key_id)) is not None:
        key = decode_key(value)
        if key.revoked_at is not None:
            return False
        if await link.run(REPLACE_KEY, key_id, value, encode(msgspec.structs.replace(key, revoked_at=now))):
            return True
    return False
