"""Lists in pages: how a page is asked for and how it is answered. Every list is bounded."""

from __future__ import annotations

from collections.abc import Collection
from typing import Annotated, Final, Generic, NamedTuple, TypeVar

import msgspec

from ksana.api.kit.conversion import one_of
from ksana.domain.errors import InvalidArgument

T = TypeVar("T")

MAX_PAGE_SIZE: Final = 200


class PageQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The query of a list; a list with filters derives from it."""

    # Bounded so that the offset fits the integers of every store.
    page: Annotated[int, msgspec.Meta(ge=1, le=1_000_000, description="which page, from 1")] = 1
    page_size: Annotated[int, msgspec.Meta(ge=1, le=MAX_PAGE_SIZE, description="items on a page")] = 50
    sort: Annotated[str, msgspec.Meta(description="a field; a leading - turns the order")] | None = None

    @property
    def offset(self) -> int:
        """How many items lie before this page."""
        return (self.page - 1) * self.page_size


class Order(NamedTuple):
    """A field to order by."""

    field: str
    descending: bool


class Page(msgspec.Struct, Generic[T], frozen=True, kw_only=True):
    """One page of a list; `next_cursor` is there only for lists that are followed by cursor."""

    items: list[T]
    total: int
    page: int
    page_size: int
    next_cursor: str | msgspec.UnsetType = msgspec.UNSET


def page_of(items: list[T], total: int, query: PageQuery, next_cursor: str | None = None) -> Page[T]:
    """The answer to a page query."""
    return Page(
        items=items,
        total=total,
        page=query.page,
        page_size=query.page_size,
        next_cursor=next_cursor if next_cursor is not None else msgspec.UNSET,
    )


def refuse_order(query: PageQuery, order: str, same: Collection[str] = ()) -> None:
    """A list that has one order refuses a wish for another rather than ignoring it; `same` are names of its own."""
    if query.sort is not None and query.sort not in same:
        raise InvalidArgument.of("sort", f"{order} here; leave it out")


def parse_sort(text: str | None, fields: Collection[str], default: Order) -> Order:
    """Read `sort`, which may name only the given fields."""
    if text is None:
        return default
    field = text.removeprefix("-")
    if field not in fields:
        raise InvalidArgument.of("sort", one_of(field, fields))
    return Order(field, descending=text != field)
