"""Idempotency-Key on creating requests: the same request with the same key is done once and answered alike.

The first answer is committed by the store together with what was created, so a repeat after a crash finds
both or neither. An answer that created nothing (an error) is not kept: repeating it tries again.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final, Protocol

from ksana.api.kit.call import Principal, Reply
from ksana.api.kit.errors import IdempotencyInFlight, IdempotencyMismatch
from ksana.domain.errors import InvalidArgument
from ksana.domain.idempotency import IdempotencyClaim, IdempotencyRecord

KEY_PATTERN: Final = "^[!-~]([ -~]{0,253}[!-~])?$"
_KEY: Final = re.compile(KEY_PATTERN[1:-1].encode())


class IdempotencySource(Protocol):
    """Where records are stored."""

    async def find(self, scope: str, key: str) -> IdempotencyRecord | None:
        """The record of this key, if the request it belongs to was committed."""
        ...


def claim_of(
    headers: Mapping[bytes, bytes], method: str, path: str, body: bytes, principal: Principal
) -> IdempotencyClaim | None:
    """The claim of a creating request; None when it carries no key."""
    raw = headers.get(b"idempotency-key")
    if raw is None:
        return None
    if not _KEY.fullmatch(raw):
        raise InvalidArgument.of("Idempotency-Key", "must be 1 to 255 printable ASCII characters")
    # Keys belong to their caller: two API keys never see each other's records.
    scope = principal.key_id or ""
    parts = (method.encode(), path.encode(), hashlib.sha256(body).digest(), scope.encode())
    # Each part is preceded by its length, so that no two different requests join to the same bytes.
    joined = b"".join(len(part).to_bytes(8, "big") + part for part in parts)
    return IdempotencyClaim(scope, raw.decode("ascii"), hashlib.sha256(joined).digest())


class Idempotency:
    """Looks for earlier answers and keeps two equal requests from running at once in this process.

    Between processes the store decides: it keeps the first and raises IdempotencyReplay for the second.
    """

    def __init__(self, source: IdempotencySource) -> None:
        self._source = source
        self._in_flight: set[tuple[str, str]] = set()

    @contextmanager
    def running(self, claim: IdempotencyClaim) -> Iterator[None]:
        """Hold the claim while its request runs."""
        name = (claim.scope, claim.key)
        if name in self._in_flight:
            raise IdempotencyInFlight("the first request with this Idempotency-Key is still running; ask again")
        self._in_flight.add(name)
        try:
            yield
        finally:
            self._in_flight.discard(name)

    async def earlier(self, claim: IdempotencyClaim) -> Reply | None:
        """The answer given before, if there is one."""
        record = await self._source.find(claim.scope, claim.key)
        return None if record is None else replay(claim, record)


def replay(claim: IdempotencyClaim, record: IdempotencyRecord) -> Reply:
    """The stored answer; IdempotencyMismatch if it answered something else."""
    if record.fingerprint != claim.fingerprint:
        raise IdempotencyMismatch("this Idempotency-Key was used for another request; make a new key for this one")
    return Reply(record.body, record.status, {"Idempotency-Replayed": "true"})
