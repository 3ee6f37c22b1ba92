"""Objects that items of the queue are about: by what items call them, or in order of type, then id."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ksana.domain.objects import GovernedObject, ObjectQuery, subject_of
from ksana.domain.queries import Page
from ksana.domain.times import to_micros
from ksana.stores.governed_search import object_fits
from ksana.stores.redis.governed_values import object_from_value, object_key, object_key_parts
from ksana.stores.redis.link import Link
from ksana.stores.redis.search import values_in
from ksana.stores.redis.values import fitting

_ORDER = "objects:order"


async def get_objects(link: Link, subjects: Iterable[str]) -> dict[str, GovernedObject]:
    values = await values_in(link, "objects", list(dict.fromkeys(subjects)))
    return {governed.subject: governed for governed in map(object_from_value, values)}


async def find_objects(link: Link, query: ObjectQuery) -> Page[GovernedObject]:
    low, high = _range(query.type)
    if query.risk is None and query.epistemic is None and query.due_before is None:
        page = ("LIMIT", query.offset, query.limit)
        total = await link.ask("ZLEXCOUNT", link.key(_ORDER), low, high)
        return Page(await _at(link, await link.ask("ZRANGEBYLEX", link.key(_ORDER), low, high, *page)), total)
    if query.due_before is None:
        keys = await link.ask("ZRANGEBYLEX", link.key(_ORDER), low, high)
    else:
        keys = await link.ask("ZRANGEBYSCORE", link.key("objects:due"), "-inf", f"({to_micros(query.due_before)}")
    found = [governed for governed in await _at(link, sorted(keys)) if object_fits(governed, query)]
    return Page(found[query.offset : query.offset + query.limit], len(found))


def _range(type: str | None) -> tuple[Any, Any]:
    if type is None:
        return "-", "+"
    with fitting():
        low = object_key(type, "").encode()
    # What comes behind all keys of the type: the same with one higher than what is between.
    return b"[" + low, b"(" + low[:-1] + b"\1"


async def _at(link: Link, keys: Sequence[bytes]) -> list[GovernedObject]:
    subjects = [subject_of(*object_key_parts(key.decode())) for key in keys]
    return [object_from_value(value) for value in await values_in(link, "objects", subjects)]
