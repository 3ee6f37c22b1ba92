"""A version as an ETag: version 3 is `"3"`, and If-Match says which version a change was made for."""

from __future__ import annotations

import re
from typing import Final

import msgspec

from ksana.api.kit.errors import PreconditionFailed
from ksana.domain.errors import InvalidArgument

_TAG: Final = re.compile(r'\s*(W/)?"([\x21\x23-\x7e]*)"\s*')
_VERSION: Final = re.compile(r"0|[1-9][0-9]{0,17}")


def etag(version: int) -> str:
    """The strong tag of a version."""
    return f'"{version}"'


class IfMatch(msgspec.Struct, frozen=True):
    """The condition of an If-Match header; `versions` is None for `*`, which any existing thing satisfies."""

    versions: frozenset[int] | None

    def require(self, version: int) -> None:
        """Refuse with 412 unless the stored version is one of those asked for."""
        if self.versions is not None and version not in self.versions:
            raise PreconditionFailed(f"If-Match does not name version {version}; read it again and repeat")

    def expected(self) -> int | None:
        """The one version an engine verb should insist on; None when any will do."""
        if self.versions is None:
            return None
        if not self.versions:
            raise PreconditionFailed("If-Match names no version of ours; send the ETag as it was given")
        if len(self.versions) > 1:
            raise InvalidArgument.of("If-Match", 'name one version, such as "3"')
        return next(iter(self.versions))


def parse_if_match(text: str) -> IfMatch:
    """Read an If-Match header."""
    if text.strip() == "*":
        return IfMatch(None)
    versions = set()
    for part in text.split(","):
        match = _TAG.fullmatch(part)
        if match is None:
            raise InvalidArgument.of("If-Match", 'send an ETag in double quotes, such as "3", or *')
        # If-Match compares strongly (RFC 9110, 13.1.1): a weak tag never matches, nor does a foreign one.
        if match[1] is None and _VERSION.fullmatch(match[2]):
            versions.add(int(match[2]))
    return IfMatch(frozenset(versions))
