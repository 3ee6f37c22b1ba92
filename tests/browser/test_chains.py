"""A chain whose picture changes as it goes, with a step that waits for a person."""

import asyncio
import re

import pytest
from playwright.async_api import expect

from tests.browser.conftest import Visiting
from tests.cli.nodes import Node
from tests.kit.sink import Reply, Sink

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_a_chain_turns_its_colours_and_goes_on_when_somebody_says_so(
    node: Node, target: Sink, visiting: Visiting
) -> None:
    may_answer = asyncio.Event()
    url = target.on("/pull", Reply(200, b'{"rows": 42}', {"Content-Type": "application/json"}, after=may_answer))
    nodes = [
        {"id": "pull", "type": "http", "cfg": {"method": "GET", "url": url}},
        {"id": "approve", "type": "wait", "deps": ["pull"], "cfg": {"message": "look at it"}},
        {"id": "load", "type": "noop", "deps": ["approve"]},
    ]
    body = {"name": "closing", "target": {"kind": "chain", "config": {"nodes": nodes}}}
    _, job = await node.call("POST", "/api/v2/jobs", body)
    visit = await visiting(node)
    page = await visit.go("chains")
    await visit.link("closing").click()
    await expect(visit.heading("closing")).to_be_visible()
    graph = page.get_by_role("group", name=re.compile("The chain as a graph"))
    await expect(graph.get_by_role("img", name="approve")).to_be_visible()
    await visit.button("Start").click()

    await expect(visit.heading(re.compile(r"Run \d+"))).to_be_visible()
    node_of = {name: graph.get_by_role("button", name=re.compile(f"^{name}:")) for name in ("pull", "approve", "load")}
    await expect(node_of["pull"]).to_have_accessible_name("pull: running")
    await expect(node_of["pull"]).to_have_class(re.compile(r"\brun\b"))
    await expect(node_of["load"]).to_have_accessible_name("load: waiting")
    may_answer.set()
    await expect(node_of["pull"]).to_have_accessible_name("pull: success")
    await expect(node_of["pull"]).to_have_class(re.compile(r"\bok\b"))
    await expect(node_of["approve"]).to_have_accessible_name("approve: awaiting callback")

    await node_of["approve"].focus()
    await page.keyboard.press("Enter")
    panel = page.get_by_role("region", name="approve")
    await visit.button("Complete by hand…", panel).click()
    asked = page.get_by_role("dialog", name="Take “approve” as done?")
    await asked.get_by_label("Result in its place (JSON)").fill('{"by": "me"}')
    await asked.get_by_label("Reason").fill("seen and fine")
    await visit.button("Complete", asked).click()
    await expect(node_of["load"]).to_have_accessible_name("load: success")
    await expect(page.locator(".page-head").get_by_text("success", exact=True)).to_be_visible()

    await page.get_by_role("tab", name="Last runs").click()
    await expect(page.get_by_role("table", name="The last runs, node by node")).to_be_visible()
    assert visit.loads == 1
    _, run = await node.call("GET", f"/api/v2/jobs/{job['id']}/runs")
    _, audit = await node.call("GET", f"/api/v2/audit?subject=run&subject_id={run['items'][0]['id']}")
    assert audit["items"]
