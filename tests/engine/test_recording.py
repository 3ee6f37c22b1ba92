"""What is entered in the audit, and on whose behalf."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import msgspec

from ksana.domain.audit import AuditEntry, AuditQuery
from ksana.domain.keys import KEY_RANDOM_BYTES, Scope, new_key
from ksana.domain.ports import Store
from ksana.engine.acting import acting, because, current_actor
from ksana.engine.auditing import Actor
from ksana.engine.key_verbs import add_key, revoke_key
from tests.kit.world import World


async def entered(world: World, **query: Any) -> list[AuditEntry]:
    """The entries found, the oldest first."""
    return (await world.store.find_audit(AuditQuery(**query))).items[::-1]


async def test_what_is_done_on_nobodys_behalf_is_not_entered(world: World) -> None:
    job = await world.job(every="1m")
    await world.main.engine.jobs.pause(job.id)
    assert await entered(world) == []


async def test_all_that_is_done_within_is_done_on_behalf_of_the_actor(world: World) -> None:
    engine = world.main.engine
    with acting(Actor("ops", request_id="r1")):
        job = await world.job()
        with because("too loud"):
            await asyncio.create_task(engine.jobs.pause(job.id))
        assert current_actor() == Actor("ops", request_id="r1")
        await engine.jobs.pause(job.id)
    assert current_actor() is None
    made, paused = await entered(world)
    assert (made.action, made.actor, made.reason, made.request_id) == ("job.create", "ops", "", "r1")
    assert (paused.action, paused.actor, paused.reason) == ("job.pause", "ops", "too loud")
    assert paused.after is not None
    assert msgspec.json.decode(paused.after)["enabled"] is False


async def test_a_reason_needs_an_actor(world: World) -> None:
    with because("no one asked"):
        assert current_actor() is None


async def test_keys_leave_entries_without_their_secret(world: World) -> None:
    made = new_key(b"k" * KEY_RANDOM_BYTES, name="ci", scopes=[Scope.JOB_READ], created_at=world.now)
    actor = Actor("command line")
    await add_key(world.store, made.stored, actor)
    assert await revoke_key(world.store, made.stored.id, world.now, actor)
    assert not await revoke_key(world.store, made.stored.id, world.now, actor)
    created, revoked = await entered(world, subject="key", subject_id=made.stored.id)
    assert (created.action, revoked.action) == ("key.create", "key.revoke")
    assert msgspec.json.decode(created.after or b"") == {"name": "ci", "scopes": ["job:read"]}


async def test_a_store_that_goes_away_behind_a_change_costs_its_entry_and_not_the_change(world: World) -> None:
    job = await world.job()
    # Has numbers of runs at hand for the next one; those of entries are asked for when there is one.
    await world.main.engine.runs.trigger(job.id)
    for verb in ("reserve_ids", "add_audit"):
        with acting(Actor("ops")), world.main.gate.away(verb):
            run = await world.main.engine.runs.trigger(job.id)
        assert [one.id for one in await world.store.get_runs([run.id])] == [run.id]
    assert await entered(world) == []


async def test_a_key_is_made_though_the_audit_cannot_be_reached(world: World) -> None:
    made = new_key(b"k" * KEY_RANDOM_BYTES, name="ci", scopes=[Scope.JOB_READ], created_at=world.now)
    with world.main.gate.away("add_audit"):
        await add_key(cast(Store, world.main.gate), made.stored, Actor("command line"))
    assert await world.store.keys() == [made.stored]
