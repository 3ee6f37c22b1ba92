"""Everything of one store into another, page by page in the order of keys.

A target that is being filled wears the source's identity turned over, so that no node takes it for whole and a copy
cut short is known by it: everything up to the last thing of each section is there, and the copy goes on behind it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from datetime import datetime
from enum import Enum
from typing import Any

import msgspec

from ksana.domain.archive import Extent, Section, Standing
from ksana.domain.errors import AlreadyExists, InvalidState
from ksana.domain.ports import Store

_CARRIED = [section for section in Section if section is not Section.STANDING]

Extents = dict[Section, Extent]


class CopyProgress(msgspec.Struct, frozen=True):
    """How far a section is: how many of its things are in the target, of how many."""

    section: Section
    done: int
    total: int

    @property
    def is_done(self) -> bool:
        return self.done >= self.total > 0


class Copied(msgspec.Struct, frozen=True):
    """What became of a section: how many things were put into the target, and how many were there already."""

    section: Section
    copied: int
    present: int


class CopyReport(msgspec.Struct, frozen=True):
    """What a copy did; `resumed` if it went on where an earlier one had been cut short."""

    sections: list[Copied]
    resumed: bool


class _Mode(Enum):
    BEGIN = "into an empty store"
    RESUME = "behind what is there"
    MERGE = "around what is there"


async def copy(
    source: Store,
    target: Store,
    now: datetime,
    on_progress: Callable[[CopyProgress], None],
    *,
    force: bool = False,
    page: int = 1000,
) -> CopyReport:
    """Put everything of `source` into `target`, in steps of one page; InvalidState or AlreadyExists if that may harm.

    `force` does it nevertheless: while nodes are at work, or into a store with other data, where whatever has the same
    key is left alone.
    """
    if not force:
        await _refuse_nodes(source, "FROM", now)
        await _refuse_nodes(target, "TO", now)
    origin, found = await _standing(source), await _standing(target)
    totals, there = await _extents(source), await _extents(target)
    mode = _mode(origin, found, there, force)
    final = _final(origin, found, mode)
    if mode is not _Mode.MERGE:
        await target.restore(Section.STANDING, [msgspec.structs.replace(final, identity=~final.identity)])
    copied = []
    for section in _CARRIED:
        begun = there[section] if mode is _Mode.RESUME else Extent(0, None)
        pages = _pages(source, section, begun.last, page)
        copied.append(await _fill(target, section, pages, begun.count, totals[section].count, on_progress))
    if not force:
        await _check_whole(source, target, origin)
    await target.restore(Section.STANDING, [final])
    return CopyReport(copied, mode is _Mode.RESUME)


async def _refuse_nodes(store: Store, which: str, now: datetime) -> None:
    if live := [node.name for node in await store.nodes() if node.lease_until > now]:
        raise InvalidState(
            f"{which} has nodes at work ({', '.join(live)}), which change it while it is copied; stop them, or wait"
            " until their leases lapse (--force copies nevertheless)"
        )


def _mode(origin: Standing, found: Standing, there: Extents, force: bool) -> _Mode:
    if origin.identity < 0 and not force:
        raise InvalidState(
            "FROM is itself a copy that was cut short; finish it first (--force copies what there is of it)"
        )
    if not any(extent.count for extent in there.values()):
        return _Mode.BEGIN
    is_half = found.identity < 0 and _is_same(origin, found)
    if is_half and not _has_moved_on(origin, found):
        return _Mode.RESUME
    if force:
        return _Mode.MERGE
    if is_half:
        raise InvalidState(
            "FROM was in use after the copy to TO was cut short, so what TO has of it is out of date; empty TO and"
            " start over (--force adds what is missing and leaves the rest as it is)"
        )
    what = "a copy of FROM, finished before" if _is_same(origin, found) else "other data"
    raise AlreadyExists(f"TO holds {what}; name an empty store (--force adds what is missing and leaves the rest)")


def _final(origin: Standing, found: Standing, mode: _Mode) -> Standing:
    """How the target is to stand when all is done: as the source, or as it was if it has a life of its own."""
    if mode is _Mode.MERGE and not _is_same(origin, found):
        # Its own minutes are not summed up as far as the source's.
        return msgspec.structs.replace(origin, identity=_whole(found.identity), rolled_until=None)
    return msgspec.structs.replace(origin, identity=_whole(origin.identity))


def _is_same(one: Standing, other: Standing) -> bool:
    return _whole(one.identity) == _whole(other.identity)


def _whole(identity: int) -> int:
    """The identity of a store once it is no longer being filled."""
    return identity if identity >= 0 else ~identity


def _has_moved_on(origin: Standing, found: Standing) -> bool:
    """Whether ids were handed out since the copy began. Nothing happens in a store without: a node takes its own."""
    return any(next_id > found.next_ids.get(name, 0) for name, next_id in origin.next_ids.items())


async def _pages(source: Store, section: Section, after: str | None, page: int) -> AsyncIterator[list[Any]]:
    while True:
        exported = await source.export(section, after, page)
        yield exported.items
        if exported.after is None:
            return
        after = exported.after


async def _fill(
    target: Store,
    section: Section,
    pages: AsyncIterator[list[Any]],
    present: int,
    total: int,
    on_progress: Callable[[CopyProgress], None],
) -> Copied:
    """Put the pages of a section in, of which so much is present."""
    copied = 0
    on_progress(CopyProgress(section, present, total))
    async for items in pages:
        new = await target.restore(section, items)
        copied += new
        present += len(items) - new
        on_progress(CopyProgress(section, copied + present, total))
    return Copied(section, copied, present)


async def _check_whole(source: Store, target: Store, origin: Standing) -> None:
    if await _standing(source) != origin:
        raise InvalidState("a node was started on FROM during the copy; stop it, empty TO and start over")
    wanted, there = await _extents(source), await _extents(target)
    for section in _CARRIED:
        if wanted[section] != there[section]:
            raise InvalidState(
                f"FROM has {wanted[section].count} {section.value} and TO got {there[section].count}: one of them was"
                " changed during the copy; empty TO and start over"
            )


async def _standing(store: Store) -> Standing:
    [standing] = (await store.export(Section.STANDING, None, 1)).items
    assert isinstance(standing, Standing)
    return standing


async def _extents(store: Store) -> Extents:
    return {section: await store.extent(section) for section in _CARRIED}
