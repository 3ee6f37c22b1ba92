"""What is remembered of a creating request, so that repeating it with the same key creates nothing twice.

The record is committed in the same transaction as the thing it created; a repeat finds both or neither.
"""

from __future__ import annotations

from datetime import datetime

import msgspec


class IdempotencyRecord(msgspec.Struct, frozen=True):
    """The answer given to the first request; (scope, key) is unique in a store."""

    scope: str
    key: str
    fingerprint: bytes
    status: int
    body: bytes
    created_at: datetime


class IdempotencyClaim(msgspec.Struct, frozen=True):
    """A request's wish to be done once: whose key it is, and a digest of everything the request said."""

    scope: str
    key: str
    fingerprint: bytes

    def answered(self, status: int, body: bytes, created_at: datetime) -> IdempotencyRecord:
        """The record to commit together with what was created."""
        return IdempotencyRecord(self.scope, self.key, self.fingerprint, status, body, created_at)


class IdempotencyReplay(Exception):
    """Raised by a store when (scope, key) is already there; nothing of this transaction was kept."""

    def __init__(self, record: IdempotencyRecord) -> None:
        super().__init__(f"{record.scope}/{record.key} was answered before")
        self.record = record
