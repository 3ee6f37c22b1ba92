"""The store as the kit wants to see it: where keys and idempotency records are found."""

from __future__ import annotations

from collections.abc import Sequence

from ksana.domain.idempotency import IdempotencyRecord
from ksana.domain.keys import StoredKey
from ksana.domain.ports import Store


class StoredKeys:
    """Keys of the store and keys given by the settings; those of the settings cannot be revoked, only taken out."""

    def __init__(self, store: Store, given: Sequence[StoredKey] = ()) -> None:
        self._store = store
        self._given = {key.id: key for key in given}

    async def find(self, key_id: str) -> StoredKey | None:
        if key_id in self._given:
            return self._given[key_id]
        return next((key for key in await self._store.keys() if key.id == key_id), None)

    async def any(self) -> bool:
        return bool(self._given) or bool(await self._store.keys())


class StoredAnswers:
    """Answers kept for Idempotency-Key."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def find(self, scope: str, key: str) -> IdempotencyRecord | None:
        return await self._store.find_idempotency(scope, key)
