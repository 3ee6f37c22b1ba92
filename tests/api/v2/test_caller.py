"""Who calls, and what they may do."""

from ksana.domain.keys import Scope
from tests.api.v2.world import World


async def test_while_there_are_no_keys_the_caller_may_do_everything(world: World) -> None:
    assert await world.seen("/api/v2/caller") == {"name": "loopback", "scopes": [str(scope) for scope in Scope]}


async def test_a_key_is_told_what_it_may_do(world: World) -> None:
    key = await world.key(Scope.JOB_READ, Scope.RUN_READ)
    told = await world.get("/api/v2/caller", headers={"X-API-Key": key})
    assert (told.status, told.json()["scopes"]) == (200, ["job:read", "run:read"])


async def test_a_key_that_may_only_look_at_queues_may_ask_as_well(world: World) -> None:
    key = await world.key(Scope.QUEUE_READ)
    told = await world.get("/api/v2/caller", headers={"X-API-Key": key})
    assert (told.status, told.json()["scopes"]) == (200, ["queue:read"])


async def test_whoever_may_administer_may_do_everything(world: World) -> None:
    key = await world.key(Scope.ADMIN)
    told = await world.get("/api/v2/caller", headers={"X-API-Key": key})
    assert told.json()["scopes"] == [str(scope) for scope in Scope]
