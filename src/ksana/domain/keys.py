"""API keys as values: what is stored, how one is made, how a presented one is judged.

Only a digest of the secret is ever stored, so a stolen table opens nothing.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Iterable
from datetime import datetime
from enum import StrEnum
from typing import Final, NamedTuple

import msgspec

from ksana.domain.errors import InvalidArgument

_ID_BYTES: Final = 8
_SECRET_BYTES: Final = 32
KEY_RANDOM_BYTES: Final = _ID_BYTES + _SECRET_BYTES
_KEY_TEXT: Final = re.compile(rf"ksk_([0-9a-f]{{{2 * _ID_BYTES}}})_([0-9a-f]{{{2 * _SECRET_BYTES}}})")


class Scope(StrEnum):
    """What a key may do. `admin` implies every other scope."""

    JOB_READ = "job:read"
    JOB_WRITE = "job:write"
    RUN_READ = "run:read"
    RUN_WRITE = "run:write"
    RUN_CONTROL = "run:control"
    CHAIN_READ = "chain:read"
    CHAIN_WRITE = "chain:write"
    QUEUE_READ = "queue:read"
    QUEUE_WRITE = "queue:write"
    QUEUE_WORK = "queue:work"
    ADMIN = "admin"


class StoredKey(msgspec.Struct, frozen=True):
    """A key as the store keeps it: everything but the secret."""

    id: str
    name: str
    digest: bytes
    scopes: frozenset[Scope]
    created_at: datetime
    revoked_at: datetime | None = None


class NewKey(NamedTuple):
    """A key just made: `text` is shown once to its owner, `stored` is what is kept."""

    text: str
    stored: StoredKey


class PresentedKey(NamedTuple):
    """The two halves of a key as a caller sent it, not yet believed."""

    id: str
    secret: str


def new_key(random_bytes: bytes, *, name: str, scopes: Iterable[Scope], created_at: datetime) -> NewKey:
    """Make a key from `KEY_RANDOM_BYTES` bytes of the system's randomness, which the caller draws."""
    if len(random_bytes) != KEY_RANDOM_BYTES:
        raise ValueError(f"a key is made from {KEY_RANDOM_BYTES} random bytes, got {len(random_bytes)}")
    granted = frozenset(scopes)
    if not name.strip():
        raise InvalidArgument.of("name", "give the key a name, so that people know what to revoke")
    if not granted:
        raise InvalidArgument.of("scopes", f"grant at least one of {', '.join(Scope)}")
    key_id, secret = random_bytes[:_ID_BYTES].hex(), random_bytes[_ID_BYTES:].hex()
    stored = StoredKey(key_id, name, digest_of(secret), granted, created_at)
    return NewKey(f"ksk_{key_id}_{secret}", stored)


def parse_key(text: str) -> PresentedKey | None:
    """Split `ksk_<id>_<secret>`; None when the text is not a key at all."""
    match = _KEY_TEXT.fullmatch(text)
    return PresentedKey(*match.groups()) if match else None


def digest_of(secret: str) -> bytes:
    """What is stored for a secret."""
    # A slow, salted hash protects secrets that people choose. This one is 32 random bytes: nobody can
    # enumerate them, so one SHA-256 is as safe, and it costs half a microsecond on every request.
    return hashlib.sha256(secret.encode()).digest()


def verify(stored: StoredKey, presented: PresentedKey) -> bool:
    """Whether the presented secret belongs to this key and the key is not revoked."""
    matches = hmac.compare_digest(stored.digest, digest_of(presented.secret))
    return matches and stored.revoked_at is None


def allows(granted: frozenset[Scope], needed: Scope) -> bool:
    """Whether these scopes cover the needed one."""
    return needed in granted or Scope.ADMIN in granted
