"""What runs here."""

from tests.api.v2.world import VERSION, World


async def test_nodes_are_listed_with_their_leases(world: World) -> None:
    [node] = await world.seen("/api/v2/nodes")
    assert node == {
        "id": node["id"],
        "name": "node-1",
        "started_at": "2030-01-01T12:00:00.000Z",
        "lease_until": "2030-01-01T12:00:10.000Z",
        "is_alive": True,
    }
    world.clock.move_to(world.clock.time.replace(second=10))
    [node] = await world.seen("/api/v2/nodes")
    assert node["is_alive"] is False


async def test_the_kinds_of_target_are_listed(world: World) -> None:
    kinds: list[str] = await world.seen("/api/v2/targets")
    assert " ".join(kinds) == "celery chain echo fail http job noop print python queue sleep task wait"


async def test_the_version_is_told(world: World) -> None:
    assert await world.seen("/api/v2/version") == {"version": VERSION}
