"""Queues: an item that died is found by its error and put back."""

import re

import pytest
from playwright.async_api import expect

from tests.browser.conftest import Visiting
from tests.cli.nodes import Node

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def bury(node: Node, queue: str, *to: str) -> list[str]:
    """Items that a worker gave up."""
    items = [{"queue": queue, "type": "welcome", "payload": {"to": one}, "max_attempts": 1} for one in to]
    await node.call("POST", "/scheduler/jobs/batch", {"jobs": items})
    _, pulled = await node.call("POST", "/scheduler/jobs/pull", {"queue": queue, "worker_id": "w", "limit": 10})
    buried = [item["job_id"] for item in pulled["jobs"]]
    for each in buried:
        await node.call("POST", f"/scheduler/jobs/{each}/fail", {"error": "no such address"})
    return buried


async def test_dead_letters_are_put_back_by_what_they_died_of(node: Node, visiting: Visiting) -> None:
    buried = await bury(node, "mail", "nobody", "noone")
    assert len(buried) == 2
    visit = await visiting(node)
    page = await visit.go("queues?queue=mail&show=dead")
    groups = page.get_by_role("table", name="Dead letters by error")
    group = groups.get_by_role("row", name=re.compile("no such address"))
    await expect(group.get_by_role("cell", name="2", exact=True)).to_be_visible()
    await visit.button("Redrive…", group).click()
    asked = page.get_by_role("dialog", name="Redrive dead letters")
    await expect(asked).to_contain_text("2 dead letters would be put back.")
    await visit.button("Redrive 2", asked).click()
    await expect(page.get_by_text("Redrive: 2 of 2")).to_be_visible()
    await expect(page.get_by_text("No dead letters")).to_be_visible()
    queue = page.get_by_role("table", name="Queues").get_by_role("row", name=re.compile("^mail"))
    await expect(queue.get_by_role("cell", name="2", exact=True).first).to_be_visible()
    _, pulled = await node.call("POST", "/scheduler/jobs/pull", {"queue": "mail", "worker_id": "w", "limit": 10})
    assert sorted(item["job_id"] for item in pulled["jobs"]) == sorted(buried)


async def test_an_item_is_enqueued_by_hand_and_its_queue_paused(node: Node, visiting: Visiting) -> None:
    await bury(node, "sms", "nobody")
    visit = await visiting(node)
    page = await visit.go("queues?queue=sms")
    queue = page.get_by_role("table", name="Queues").get_by_role("row", name=re.compile("^sms"))
    await visit.button("Actions for sms", queue).click()
    await page.get_by_role("menuitem", name="Pause").click()
    asked = page.get_by_role("dialog", name="Pause queue “sms”?")
    await asked.get_by_label("Reason").fill("the gateway is down")
    await visit.button("Pause", asked).click()
    await expect(queue).to_contain_text("the gateway is down")
    _, seen = await node.call("GET", "/api/v2/queues")
    assert [each["paused"] for each in seen["items"] if each["queue"] == "sms"] == [True]


async def test_a_queue_is_purged_once_its_name_is_typed(node: Node, visiting: Visiting) -> None:
    await bury(node, "spilled", "ann@a.test")
    items = [{"queue": "spilled", "payload": {"to": number}} for number in range(3)]
    await node.call("POST", "/scheduler/jobs/batch", {"jobs": items})
    visit = await visiting(node)
    page = await visit.go("queues")
    await visit.button("Actions for spilled").click()
    await page.get_by_role("menuitem", name="Purge…").click()
    asked = page.get_by_role("dialog", name="Purge “spilled”")
    await expect(asked).to_contain_text("3 items would be canceled for good.")
    await expect(visit.button("Purge 3", asked)).to_be_disabled()
    await asked.get_by_label("dead letters, too").check()
    await expect(asked).to_contain_text("4 items would be canceled for good.")
    await asked.get_by_label("dead letters, too").uncheck()
    await asked.get_by_label("Type spilled to go on").fill("spilled")
    await visit.button("Purge 3", asked).click()
    await expect(page.get_by_text("Purge: 3 of 3")).to_be_visible()
    _, queues = await node.call("GET", "/api/v2/queues")
    [left] = [one for one in queues["items"] if one["queue"] == "spilled"]
    assert (left["queued"], left["dead_letters"]) == (0, 1)


async def test_a_node_is_drained_and_says_so(node: Node, visiting: Visiting) -> None:
    visit = await visiting(node)
    page = await visit.go("system")
    nodes = page.get_by_role("table", name="Nodes")
    await visit.button("Drain", nodes).click()
    asked = page.get_by_role("dialog", name=re.compile("^Drain"))
    await visit.button("Drain", asked).click()
    await expect(nodes).to_contain_text("drained")
    await visit.button("Resume", nodes).click()
    await expect(nodes).not_to_contain_text("drained")
    _, [found] = await node.call("GET", "/api/v2/nodes")
    assert found["draining"] is False


async def test_what_others_work_on_takes_no_place_of_the_node(node: Node, visiting: Visiting) -> None:
    await node.call("POST", "/scheduler/jobs", {"queue": "elsewhere"})
    await node.call("POST", "/scheduler/jobs/pull", {"queue": "elsewhere", "worker_id": "w"})
    chain = {
        "kind": "chain",
        "config": {"nodes": [{"id": "approve", "type": "wait", "cfg": {"message": "look at it"}}]},
    }
    _, job = await node.call("POST", "/api/v2/jobs", {"name": "closing", "target": chain})
    await node.call("POST", f"/api/v2/jobs/{job['id']}/runs")
    seen = await node.until("/api/v2/overview", lambda seen: seen["callbacks"]["waiting"])
    assert seen["running"]["now"] >= 2
    visit = await visiting(node)
    await visit.go()
    await expect(visit.link(re.compile("^Running")).locator(".tile-value")).to_have_text("0")
