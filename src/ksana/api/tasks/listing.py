"""Lists as bare arrays: which part of them, and the totals in headers."""

from __future__ import annotations

from typing import Final

import msgspec

MAX_PAGE_SIZE: Final = 200
_PAGE_SIZE: Final = 20


class Cut(msgspec.Struct, frozen=True):
    """A part of a list: the page asked for, or as much as is shown unasked."""

    page: int
    size: int

    @classmethod
    def of(cls, page: int | None, page_size: int | None, unasked: int) -> Cut:
        if page is None and page_size is None:
            return cls(1, unasked)
        return cls(page or 1, page_size or _PAGE_SIZE)

    @property
    def offset(self) -> int:
        return (self.page - 1) * self.size

    def headers(self, total: int) -> dict[str, str]:
        """What a bare array cannot say of itself."""
        return {"X-Total-Count": str(total), "X-Page": str(self.page), "X-Page-Size": str(self.size)}
