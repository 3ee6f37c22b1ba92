"""axe-core has nothing serious to say about any page, in light and in dark."""

import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Page, expect

from tests.browser.conftest import Visiting
from tests.cli.nodes import Node

pytestmark = pytest.mark.asyncio(loop_scope="session")

AXE = Path(__file__).parent / "vendor" / "axe.min.js"
GRAVE = ("serious", "critical")
PAGES = [
    "",
    "jobs",
    "jobs/new",
    "jobs/{job}?tab=definition",
    "runs",
    "runs/{run}",
    "chains",
    "chains/{chain}/runs/{chain_run}?node=approve",
    "queues?show=dead",
    "system",
]
if os.environ.get("KSANA_TEST_EXPLORE") == "1":
    PAGES += [
        "jobs/{job}",
        "jobs/{job}?tab=fires",
        "chains/{chain}",
        "chains/{chain}?tab=definition",
        "queues",
        "nowhere",
    ]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def things(node: Node) -> AsyncIterator[dict[str, Any]]:
    """Something of everything that is shown, failures and waiting included."""
    made: dict[str, Any] = {}

    async def make(name: str, target: dict[str, Any], **more: object) -> int:
        body = {"name": name, "target": target, "tags": ["seen"], **more}
        status, job = await node.call("POST", "/api/v2/jobs", body)
        assert status == 201, job
        number: int = job["id"]
        return number

    refused = {"kind": "http", "config": {"method": "POST", "url": "http://127.0.0.1:9/", "json": {"a": 1}}}
    cron = {"kind": "cron", "expr": "*/7 * * * *", "timezone": "Europe/Berlin"}
    made["job"] = await make("failing", refused, schedule=cron)
    await node.call("PATCH", f"/api/v2/jobs/{made['job']}", {"description": "changed once"})
    paused = await make("paused", {"kind": "noop"}, schedule=cron)
    await node.call("POST", f"/api/v2/jobs/{paused}/pause", {"reason": "a while"})
    approve = {"id": "approve", "type": "wait", "deps": ["pull"]}
    graph = {"nodes": [{"id": "pull", "type": "noop"}, approve, {"id": "load", "type": "noop", "deps": ["approve"]}]}
    made["chain"] = await make("chained", {"kind": "chain", "config": graph})
    for job, run, state in (("job", "run", "FAILED"), ("chain", "chain_run", "RUNNING")):
        _, begun = await node.call("POST", f"/api/v2/jobs/{made[job]}/runs")
        made[run] = begun["id"]
        await node.until(f"/api/v2/runs/{begun['id']}", lambda run, wanted=state: run["state"] == wanted)
    for to in ("nobody", "somebody"):
        item = {"queue": "mail", "type": "welcome", "payload": {"to": to}, "max_attempts": 1}
        await node.call("POST", "/scheduler/jobs", item)
    _, pulled = await node.call("POST", "/scheduler/jobs/pull", {"queue": "mail", "worker_id": "w", "limit": 2})
    dead = pulled["jobs"][0]["job_id"]
    await node.call("POST", f"/scheduler/jobs/{dead}/fail", {"error": "no such address"})
    yield made


@pytest.mark.parametrize("place", PAGES)
async def test_nothing_serious_is_found(place: str, node: Node, things: dict[str, Any], visiting: Visiting) -> None:
    # What axe itself does to a page is not held against the page.
    visit = await visiting(node, bypass_csp=True)
    await visit.context.add_init_script(path=AXE)
    page = await visit.go(place.format(**things))
    await expect(page.get_by_role("navigation", name="Pages", exact=True)).to_be_visible()
    await expect(page.get_by_text("Loading…")).to_have_count(0)
    in_light = await grave_findings(page)
    await page.emulate_media(color_scheme="dark")
    # Only colours change with the theme.
    in_dark = await grave_findings(page, "color-contrast")
    assert (in_light, in_dark) == ([], [])


async def grave_findings(page: Page, *rules: str) -> list[str]:
    options = {"runOnly": {"type": "rule", "values": rules}} if rules else {}
    result = await page.evaluate(
        "options => axe.run(document, options)", {"resultTypes": ["violations"], "preload": False, **options}
    )
    return [
        f"{found['id']}: {found['help']}: {node['html']} {node['any'][0]['message'] if node['any'] else ''}"
        for found in result["violations"]
        if found["impact"] in GRAVE
        for node in found["nodes"]
    ]
