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
        "draining": False,
        "held": None,
    }
    world.clock.move_to(world.clock.time.replace(second=10))
    [node] = await world.seen("/api/v2/nodes")
    assert node["is_alive"] is False


async def test_the_kinds_of_target_are_listed(world: World) -> None:
    kinds: list[str] = await world.seen("/api/v2/targets")
    assert " ".join(kinds) == "celery chain echo fail http job noop print python queue sleep task wait"


async def test_the_version_is_told(world: World) -> None:
    assert await world.seen("/api/v2/version") == {"version": VERSION}


async def test_a_node_is_told_to_drain_and_to_work_again(world: World) -> None:
    [node] = await world.seen("/api/v2/nodes")
    path = f"/api/v2/nodes/{node['id']}"
    told = (await world.post(f"{path}/drain", {"reason": "new kernel"})).json()
    assert (told["draining"], told["held"]) == (True, 0)
    assert (await world.seen("/api/v2/system"))["nodes"] == [told]
    assert (await world.post(f"{path}/resume")).json()["draining"] is False
    entries = (await world.seen("/api/v2/audit?subject=node"))["items"]
    assert [(one["action"], one["reason"]) for one in entries] == [("node.resume", ""), ("node.drain", "new kernel")]
    assert (await world.post("/api/v2/nodes/999/drain")).status == 404
