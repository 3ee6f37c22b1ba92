"""Ids, identity and API keys."""

import asyncio

import msgspec
import pytest

from ksana.domain.keys import Scope, StoredKey
from ksana.domain.ports import Store
from tests.stores.builders import HOUR, NOW
from tests.stores.conftest import Reopen


@pytest.mark.parametrize("what", ["job", "run"])
async def test_reserved_ids_rise(store: Store, what: str) -> None:
    first, second = await store.reserve_ids(what, 3), await store.reserve_ids(what, 1)
    assert len(first) == 3
    assert first.start >= 1
    assert list(second) == [first.stop]


async def test_ids_reserved_at_once_are_nobody_elses(store: Store, reopen: Reopen) -> None:
    nodes = [store, await reopen(), await reopen()]
    blocks = await asyncio.gather(*(node.reserve_ids("run", n) for n in range(1, 11) for node in nodes))
    reserved = [id for block in blocks for id in block]
    assert len(set(reserved)) == len(reserved) == 3 * 55


async def test_the_identity_is_the_same_for_every_node_and_stays(store: Store, reopen: Reopen) -> None:
    identity = await store.identity()
    assert 0 <= identity < 2**63
    assert await (await reopen()).identity() == identity == await store.identity()


async def test_a_store_answers_a_ping(store: Store) -> None:
    await store.ping()


async def test_keys_are_kept_and_revoked_once(store: Store) -> None:
    old = StoredKey("b" * 16, "CI 🚀", b"\0\xff" * 16, frozenset(Scope), NOW)
    new = StoredKey("a" * 16, "CI 🚀", b"'%\\" * 10, frozenset({Scope.JOB_READ}), NOW + HOUR)
    await store.add_key(new)
    await store.add_key(old)
    assert await store.keys() == [old, new]
    assert await store.revoke_key(new.id, NOW + HOUR)
    assert not await store.revoke_key(new.id, NOW + 2 * HOUR)
    assert not await store.revoke_key("nobody's", NOW)
    assert await store.keys() == [old, msgspec.structs.replace(new, revoked_at=NOW + HOUR)]
