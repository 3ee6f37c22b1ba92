"""A run that failed: why, and what to do about it, with the mouse and with the keyboard alone."""

import re
from typing import Any

import pytest
from playwright.async_api import expect

from tests.browser.conftest import Visiting
from tests.cli.nodes import Node
from tests.kit.sink import Reply, Sink

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def job_to(node: Node, name: str, url: str) -> Any:
    body = {
        "name": name,
        "target": {"kind": "http", "config": {"method": "POST", "url": url, "json": {"customer": 7}}},
        "retry": {"max_attempts": 2, "initial_delay": "10ms"},
    }
    status, job = await node.call("POST", "/api/v2/jobs", body)
    assert status == 201, job
    return job


async def test_a_failed_run_says_why_and_is_retried(node: Node, target: Sink, visiting: Visiting) -> None:
    broken = Reply(503, b'{"detail": "the till is shut"}', {"Content-Type": "application/json", "X-Till": "4"})
    job = await job_to(node, "billing", target.on("/billing", broken, broken, Reply(200, b'{"paid": true}')))
    visit = await visiting(node)
    page = await visit.go(f"jobs/{job['id']}?tab=runs")
    await visit.button("Run now").click()
    failed = page.get_by_role("table").get_by_role("link", name=re.compile("503"))
    await failed.click()

    await expect(visit.heading("billing")).to_be_visible()
    await expect(page.get_by_text("attempt 2 of 2")).to_be_visible()
    await expect(page.get_by_role("region", name="Error")).to_contain_text("503")
    attempts = page.get_by_role("region", name="What happened")
    await attempts.get_by_role("button", name=re.compile("Attempt 1 503")).click()
    attempt = page.get_by_role("region", name="Attempt 1")
    await expect(attempt.get_by_role("tabpanel")).to_contain_text("the till is shut")
    await expect(attempt.get_by_role("tabpanel")).to_contain_text("x-till")
    await attempt.get_by_role("tab", name="Request").click()
    await expect(attempt.get_by_role("tabpanel")).to_contain_text(f"POST {target.url}/billing")
    await expect(attempt.get_by_role("tabpanel")).to_contain_text('"customer"')

    await visit.button("Retry").click()
    await visit.button("Retry", page.get_by_role("dialog")).click()
    await expect(page.get_by_text(re.compile(r"^Run \d+ is tried again\.$"))).to_be_visible()
    await expect(page.locator(".page-head").get_by_text("success")).to_be_visible()
    await expect(page.get_by_role("region", name="Attempt 1")).to_contain_text("Request")
    assert visit.loads == 1
    assert len(target.to("/billing")) == 3


async def test_a_failure_is_found_and_run_again_with_the_keyboard_alone(
    node: Node, target: Sink, visiting: Visiting
) -> None:
    job = await job_to(node, "keys only", target.on("/keys", Reply(400), Reply(400), Reply(200)))
    for _ in range(2):
        _, run = await node.call("POST", f"/api/v2/jobs/{job['id']}/runs")
        await node.until(f"/api/v2/runs/{run['id']}", lambda run: run["state"] == "FAILED")
    visit = await visiting(node)
    page = await visit.go()
    await expect(visit.heading("Overview")).to_be_visible()
    press = page.keyboard.press

    await press("Control+k")
    await expect(page.get_by_role("combobox", name="Find a page, job or run")).to_be_focused()
    await page.keyboard.type("failed")
    await expect(page.get_by_role("option", name="Failed runs")).to_have_attribute("aria-selected", "true")
    await press("Enter")
    await expect(visit.heading("Runs")).to_be_visible()

    # The newest stand first, below the row of headings.
    rows = page.get_by_role("row")
    await expect(rows.nth(2)).to_contain_text("keys only")
    await press("j")
    await expect(rows.nth(1)).to_have_class("at")
    await press("j")
    await expect(rows.nth(2)).to_have_class("at")
    await press("k")
    await expect(rows.nth(1)).to_have_class("at")
    await press("Enter")
    await expect(visit.heading("keys only")).to_be_visible()
    await expect(page.get_by_text("attempt 1 of 2")).to_be_visible()

    await press("?")
    await expect(page.get_by_role("dialog", name="Keys")).to_contain_text("Run again")
    await press("Escape")
    await expect(page.get_by_role("dialog")).to_have_count(0)
    await press("r")
    await expect(page.locator(".page-head").get_by_text("success")).to_be_visible()
    await press("[")
    await expect(page.locator(".page-head").get_by_text("failed")).to_be_visible()
    assert visit.loads == 1


async def test_many_failed_runs_are_retried_at_once(node: Node, target: Sink, visiting: Visiting) -> None:
    replies = [Reply(400)] * 3
    job = await job_to(node, "again please", target.on("/again", *replies, Reply(200)))
    for _ in range(3):
        _, run = await node.call("POST", f"/api/v2/jobs/{job['id']}/runs")
        await node.until(f"/api/v2/runs/{run['id']}", lambda run: run["state"] == "FAILED")
    visit = await visiting(node)
    page = await visit.go("runs?name=again%20please&state=FAILED")
    await page.get_by_label("Select all rows of this page").check()
    await visit.button("Retry", page.get_by_role("region", name="Act on the selected")).click()
    await visit.button("Retry", page.get_by_role("dialog", name="Retry 3 runs?")).click()
    await expect(page.get_by_text("Retry: 3 of 3")).to_be_visible()
    await node.until(f"/api/v2/runs?job_id={job['id']}&state=SUCCESS", lambda found: found["total"] == 3)
