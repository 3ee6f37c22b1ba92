"""Secrets in headers: what may be shown of them, and which must not follow a redirect to another host."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

SECRET_HEADERS = frozenset({"authorization", "proxy-authorization", "cookie", "set-cookie", "x-api-key"})
MASK = "***"


class Secrets:
    """The names of headers whose values nobody may see."""

    def __init__(self, more: Iterable[str] = ()) -> None:
        self._names = SECRET_HEADERS | {name.lower() for name in more}

    def __contains__(self, name: str) -> bool:
        return name.lower() in self._names

    def masked(self, headers: Mapping[str, str]) -> dict[str, str]:
        """The headers as they may be shown."""
        return {name: MASK if name.lower() in self._names else value for name, value in headers.items()}

    def masked_answer(self, headers: dict[str, str]) -> dict[str, str]:
        """The headers of an answer, named in lower case, as they may be shown."""
        return headers if self._names.isdisjoint(headers) else self.masked(headers)

    def without(self, headers: Mapping[str, str]) -> dict[str, str]:
        """The headers that are no secrets."""
        return {name: value for name, value in headers.items() if name.lower() not in self._names}
