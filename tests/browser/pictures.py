"""Takes the pictures of the README: `make pictures` runs `ksana demo` until there is something to see, and looks at it.

The demo runs by the real clock, so this takes about six minutes; it is no test. That the pictures are there is one.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from playwright.async_api import Browser, async_playwright, expect

from tests.browser.chromium import launched
from tests.browser.visits import open_visit
from tests.cli.nodes import Node
from tests.kit.processes import ksana
from tests.services.browser import VARIABLE, find_chromium

PLACE = Path(__file__).parent.parent.parent / "docs" / "images"
SIZE = (1280, 800)
LARGEST = 300_000
NAMES = ("overview-light", "overview-dark", "run", "chain", "queues", "jobs-zh")
_PATIENCE = 600


async def take(browser: Browser, node: Node) -> None:
    """Take all of them once the demo has run for a while."""
    _, jobs = await node.call("GET", "/api/v2/jobs?page_size=50")
    ids: dict[str, int] = {job["name"]: job["id"] for job in jobs["items"]}
    # It breaks every other minute: after the third time there is something to see of everything.
    await node.process.line(r"(?s)✕ demo\.broken.*✕ demo\.broken.*✕ demo\.broken", timeout=_PATIENCE)
    _, flaky = await node.call("GET", f"/api/v2/jobs/{ids['demo.flaky']}/runs?state=SUCCESS")
    await _shoot(browser, node, "overview-light", "?range=15m")
    await _shoot(browser, node, "overview-dark", "?range=15m", color_scheme="dark")
    await _shoot(browser, node, "run", f"runs/{flaky['items'][0]['id']}?attempt=1&show=response")
    await _shoot(browser, node, "jobs-zh", "jobs", locale="zh-CN")
    await _shoot(browser, node, "queues", "queues?show=dead")
    _, begun = await node.call("POST", f"/api/v2/jobs/{ids['demo.nightly']}/runs")
    # Half-way through, so that there is something of every colour.
    await _shoot(
        browser, node, "chain", f"chains/{ids['demo.nightly']}/runs/{begun['id']}?node=clean", "clean: running"
    )


async def _shoot(browser: Browser, node: Node, name: str, path: str, until: str = "", **wishes: Any) -> None:
    visit = await open_visit(browser, node.url, timezone_id="Asia/Shanghai", **wishes)
    page = await visit.go(path)
    await expect(page.locator("h1")).to_be_visible()
    await expect(page.locator("button.live.live")).to_be_visible()
    await expect(page.locator(".spinner")).to_have_count(0)
    if until:
        await expect(page.get_by_role("button", name=until)).to_be_visible()
    await page.screenshot(path=PLACE / f"{name}.png")
    await visit.close()


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")


async def main(environment: Mapping[str, str]) -> int:
    found = find_chromium(environment.get(VARIABLE), _say)
    if found.url is None:
        _say(f"no pictures: {found.how}")
        return 1
    PLACE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as directory:
        async with (
            async_playwright() as playwright,
            ksana("demo", "--port", "0", "--no-open", directory=Path(directory)) as process,
        ):
            browser = await launched(playwright, found.url)
            greeting = await process.line(r"console (http://[\w.:]+)/console/")
            await process.line("ksana init")
            await take(browser, Node(process, greeting[1]))
            await browser.close()
    return 0


if __name__ == "__main__":
    import os

    sys.exit(asyncio.run(main(os.environ)))
