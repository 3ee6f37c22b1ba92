"""Who is calling: API keys from the Authorization or X-API-Key header, looked up and remembered for seconds.

While no key was ever made the API is open; from the first key on, every route that is not public needs one. A
revoked key dies everywhere within the time a look-up is remembered.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Final, Protocol

from ksana.api.kit.call import Principal
from ksana.api.kit.errors import Forbidden, Unauthenticated
from ksana.domain.keys import Scope, StoredKey, parse_key, verify

_MAX_REMEMBERED: Final = 1024
OPEN: Final = Principal("loopback", None, frozenset({Scope.ADMIN}))
UNKNOWN: Final = Principal("public", None, frozenset())


class KeySource(Protocol):
    """Where keys are stored."""

    async def find(self, key_id: str) -> StoredKey | None:
        """The key of this id, revoked or not."""
        ...

    async def any(self) -> bool:
        """Whether a key was ever made. Revoked ones count: revoking the last key must not open the API."""
        ...


class KeyRing:
    """Judges the key of a request. `monotonic` is a clock in seconds that never goes back."""

    def __init__(
        self, source: KeySource, monotonic: Callable[[], float], remember: timedelta = timedelta(seconds=3)
    ) -> None:
        self._source = source
        self._monotonic = monotonic
        self._remember = remember.total_seconds()
        self._known: dict[str, tuple[float, StoredKey]] = {}
        self._any: tuple[float, bool] | None = None

    async def is_open(self) -> bool:
        """Whether no key was ever made."""
        now = self._monotonic()
        if self._any is None or self._any[0] <= now:
            self._any = (now + self._remember, await self._source.any())
        return not self._any[1]

    async def principal(self, headers: Mapping[bytes, bytes]) -> Principal:
        """The holder of the key in these headers; Unauthenticated without a good one."""
        presented = parse_key(_key_text(headers))
        if presented is None:
            raise Unauthenticated("that is not an API key; it looks like ksk_<id>_<secret>")
        stored = await self._find(presented.id)
        # Ids are no secret, so an unknown id may answer sooner than a wrong secret does.
        if stored is None or not verify(stored, presented):
            raise Unauthenticated("this API key is unknown or revoked")
        return Principal(stored.name, stored.id, stored.scopes)

    def forget(self) -> None:
        """Look everything up again: called after this process made or revoked a key."""
        self._known.clear()
        self._any = None

    async def _find(self, key_id: str) -> StoredKey | None:
        now = self._monotonic()
        remembered = self._known.get(key_id)
        if remembered is not None and remembered[0] > now:
            return remembered[1]
        stored = await self._source.find(key_id)
        if stored is not None:
            if len(self._known) >= _MAX_REMEMBERED:
                self._known.clear()
            self._known[key_id] = (now + self._remember, stored)
        return stored


def require_scope(principal: Principal, scope: Scope) -> None:
    """Forbidden unless the caller holds the scope."""
    if not principal.may(scope):
        raise Forbidden(f"the key {principal.name!r} lacks the scope {scope}")


def _key_text(headers: Mapping[bytes, bytes]) -> str:
    authorization = headers.get(b"authorization")
    if authorization is not None:
        scheme, _, text = authorization.decode("latin-1").partition(" ")
        if scheme.lower() != "bearer":
            raise Unauthenticated("send the API key as Authorization: Bearer, or as X-API-Key")
        return text.strip()
    key = headers.get(b"x-api-key")
    if key is None:
        raise Unauthenticated("this needs an API key; send it as Authorization: Bearer, or as X-API-Key")
    return key.decode("latin-1").strip()
