"""What frames every page: languages, zones, keys, one stream for all tabs, and a server that goes away."""

import asyncio
import os
import re
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.async_api import Page, expect

from ksana.domain.keys import Scope
from tests.browser.conftest import Visiting
from tests.browser.visits import Visit
from tests.cli.nodes import Node, command, serving
from tests.kit.sink import Sink

pytestmark = pytest.mark.asyncio(loop_scope="session")

CRON = {"kind": "cron", "expr": "30 9 * * *", "timezone": "Asia/Shanghai"}


async def job(node: Node, name: str, **more: object) -> int:
    status, made = await node.call("POST", "/api/v2/jobs", {"name": name, "target": {"kind": "noop"}, **more})
    assert status == 201, made
    number: int = made["id"]
    return number


async def test_language_zone_and_theme_change_what_is_shown_and_are_remembered(node: Node, visiting: Visiting) -> None:
    await job(node, "zones", schedule=CRON)
    visit = await visiting(node, timezone_id="Europe/Berlin")
    page = await visit.go("jobs?name=zones")
    row = page.get_by_role("row", name=re.compile("zones"))
    # Half past nine in Shanghai is half past two in a Berlin winter, half past three in its summer.
    await expect(row.locator("time")).to_contain_text(re.compile(r"(02:30:00 \+01:00|03:30:00 \+02:00)"))
    zone = page.get_by_label("Time zone of all times")
    await zone.select_option("UTC")
    await expect(row.locator("time")).to_contain_text("01:30:00 UTC")
    await zone.select_option(label="The job's own")
    await expect(row.locator("time")).to_contain_text("09:30:00 +08:00")
    await zone.select_option(label="Other zone…")
    await page.get_by_label("Name of the zone").fill("new york")
    await page.keyboard.press("Enter")
    await expect(row.locator("time")).to_contain_text(re.compile(r"20:30:00 -05:00|21:30:00 -04:00"))

    await visit.link("zones").click()
    await expect(page.get_by_text("At 09:30 every day (Asia/Shanghai)")).to_be_visible()
    await page.get_by_title("Switch language").click()
    await expect(page.get_by_text(re.compile("每天 09:30"))).to_be_visible()
    await page.go_back()
    await expect(visit.heading("任务")).to_be_visible()
    assert await page.locator("html").get_attribute("lang") == "zh-CN"
    ground = "getComputedStyle(document.body).backgroundColor"
    light = await page.evaluate(ground)
    await page.get_by_role("button", name=re.compile("主题")).click()
    await page.get_by_role("button", name=re.compile("主题")).click()
    dark = await page.evaluate(ground)
    assert light != dark

    await page.reload()
    await expect(visit.heading("任务")).to_be_visible()
    await expect(row.locator("time")).to_contain_text(re.compile(r"20:30:00 -05:00|21:30:00 -04:00"))
    assert await page.evaluate(ground) == dark


async def test_a_chinese_browser_in_shanghai_is_greeted_in_chinese(node: Node, visiting: Visiting) -> None:
    await job(node, "greeting", schedule=CRON)
    visit = await visiting(node, locale="zh-CN", timezone_id="Asia/Shanghai", color_scheme="dark")
    page = await visit.go("jobs?name=greeting")
    await expect(visit.heading("任务")).to_be_visible()
    await expect(page.get_by_role("row", name=re.compile("greeting")).locator("time")).to_contain_text(
        "09:30:00 +08:00"
    )


async def test_eight_tabs_share_one_stream_and_another_takes_over(node: Node, visiting: Visiting) -> None:
    visit = await visiting(node)
    streams: list[Page] = []

    def note(page: Page) -> None:
        page.on("request", lambda asked: streams.append(page) if is_stream(asked.url) else None)

    visit.context.on("page", note)
    note(visit.page)
    tabs = [visit.page, *[await visit.context.new_page() for _ in range(7)]]
    for tab in tabs:
        await visit.go("jobs?name=eight", tab)
        await expect(tab.get_by_text("live", exact=True)).to_be_visible()
    assert streams == [tabs[0]]

    await job(node, "eight hear of it")
    for tab in tabs:
        await expect(tab.get_by_role("link", name="eight hear of it")).to_be_visible()
    assert streams == [tabs[0]]

    await tabs[0].close()
    await job(node, "eight minus one")
    for tab in tabs[1:]:
        await expect(tab.get_by_role("link", name="eight minus one")).to_be_visible()
    assert len(streams) == 2
    assert streams[1] in tabs[1:]


def is_stream(url: str) -> bool:
    return urlsplit(url).path.endswith("/api/v2/events")


async def test_a_server_that_goes_away_is_said_and_found_again(tmp_path: Path, visiting: Visiting) -> None:
    async with serving(tmp_path) as node:
        await job(node, "before")
        visit = await visiting(node)
        visit.forgives("ERR_CONNECTION_REFUSED|ERR_INCOMPLETE_CHUNKED_ENCODING|ERR_CONNECTION_RESET")
        page = await visit.go("jobs")
        await expect(visit.link("before")).to_be_visible()
        await expect(page.get_by_text("live", exact=True)).to_be_visible()
        await node.process.kill()
        alert = page.get_by_role("alert").filter(has_text="cannot be reached")
        await expect(alert.first).to_be_visible()
        await expect(visit.link("before")).to_be_visible()
    port = urlsplit(node.url).port
    async with serving(tmp_path, "--port", str(port)) as again:
        await job(again, "after")
        await expect(visit.link("after")).to_be_visible()
        await expect(page.get_by_text("live", exact=True)).to_be_visible()
        await expect(alert).to_have_count(0)
    assert visit.loads == 1


async def test_a_key_lets_in_and_one_that_may_only_look_offers_nothing_to_do(
    tmp_path: Path, visiting: Visiting
) -> None:
    looks = [f"--scope={scope}" for scope in Scope if scope.endswith(":read")]
    looking = await key(tmp_path, "looker", *looks)
    acting = await key(tmp_path, "boss")
    async with serving(tmp_path) as node:
        body = {"name": "guarded", "target": {"kind": "noop"}, "schedule": CRON}
        _, made = await node.call("POST", "/api/v2/jobs", body, {"X-API-Key": acting})
        visit = await visiting(node)
        visit.forgives("status of 401")
        page = await visit.go(f"jobs/{made['id']}")
        asked = page.get_by_role("dialog", name="API key needed")
        field = asked.get_by_label("API key")
        await field.fill("ksk_wrong")
        await visit.button("Enter", asked).click()
        await expect(asked).to_contain_text("that is not an API key")
        await field.fill(looking)
        await page.keyboard.press("Enter")
        await expect(visit.heading("guarded")).to_be_visible()
        await expect(asked).to_have_count(0)
        await expect(page.get_by_text("read-only")).to_be_visible()
        for name in ("Run now", "Pause"):
            await expect(visit.button(name)).to_have_count(0)
        await visit.link("Jobs").first.click()
        await expect(page.get_by_role("row", name=re.compile("guarded"))).to_be_visible()
        await expect(visit.link("New job")).to_have_count(0)
        await expect(page.get_by_role("checkbox")).to_have_count(0)

        await visit.button("Sign out").click()
        await field.fill(acting)
        await page.keyboard.press("Enter")
        await expect(visit.link("New job")).to_be_visible()
        await expect(page.get_by_text("live", exact=True)).to_be_visible()
        assert not [url for url in visit.requests if "ksk_" in url]
        await visit.close()


ACTS = re.compile(
    "^(New|Create|Save|Run (now|again|with)|Start$|Start with|Pause|Resume|Retry|Cancel|Stop|Complete|Restore|Enqueue|"
    "Redrive|Purge|Drain|Delete|Actions)"
)


async def test_a_key_that_may_only_look_finds_nothing_to_do_on_any_page(tmp_path: Path, visiting: Visiting) -> None:
    looks = [f"--scope={scope}" for scope in Scope if scope.endswith(":read")]
    looking, acting = await key(tmp_path, "looker", *looks), {"X-API-Key": await key(tmp_path, "boss")}
    async with serving(tmp_path) as node:
        visit = await visiting(node)
        visit.forgives("status of 401")
        page = await visit.go("jobs")
        asked = page.get_by_role("dialog", name="API key needed")
        await asked.get_by_label("API key").fill(looking)
        await page.keyboard.press("Enter")
        await expect(asked).to_have_count(0)
        # Where there is nothing yet, somebody who may would be invited to make something.
        for path in ("jobs", "chains", ""):
            await finds_nothing_to_do(visit, path)
        nodes = {"nodes": [{"id": "one", "type": "fail"}]}
        for name, target in (("plain", {"kind": "fail"}), ("linked", {"kind": "chain", "config": nodes})):
            _, made = await node.call("POST", "/api/v2/jobs", {"name": name, "target": target}, acting)
            await node.call("POST", f"/api/v2/jobs/{made['id']}/runs", {}, acting)
        item = {"queue": "mail", "type": "welcome", "payload": {}}
        assert (await node.call("POST", "/scheduler/jobs", item, acting))[0] in (200, 201)
        await visit.go("runs?range=all")
        await expect(page.get_by_role("row").filter(has_text="failed")).to_have_count(2)
        paths = ["", "jobs", "jobs/1", "jobs/1?tab=definition", "runs?range=all", "runs/1", "chains", "chains/2"]
        paths += ["chains/2/runs/2?node=one", "queues", "queues?show=dead", "system"]
        if os.environ.get("KSANA_TEST_EXPLORE") == "1":
            paths += ["jobs/new", "chains/2?tab=definition", "queues?show=objects"]
            paths += [f"jobs/1?tab={tab}" for tab in ("runs", "fires", "versions", "activity")]
        for path in paths:
            await finds_nothing_to_do(visit, path)
        await visit.go("jobs")
        await page.keyboard.press("Control+k")
        await expect(page.get_by_role("listbox").get_by_role("option", name="Chains")).to_be_visible()
        await expect(page.get_by_role("option", name="New job")).to_have_count(0)
        await visit.close()


async def finds_nothing_to_do(visit: Visit, path: str) -> None:
    page = await visit.go(path)
    await expect(page.get_by_text("read-only")).to_be_visible()
    await expect(page.get_by_role("heading", level=1)).to_be_visible()
    await expect(page.locator(".spinner")).to_have_count(0)
    for role in ("button", "link"):
        await expect(page.locator("main").get_by_role(role, name=ACTS)).to_have_count(0)
    await expect(page.get_by_role("checkbox", name=re.compile("^Select"))).to_have_count(0)


async def key(directory: Path, name: str, *scopes: str) -> str:
    async with command("key", "create", "--name", name, *scopes, directory=directory) as making:
        text: str = (await making.line(r"ksk_\w+")).group()
        return text


async def test_what_breaks_the_policy_or_leaves_the_origin_would_fail_a_test(
    node: Node, target: Sink, visiting: Visiting
) -> None:
    visit = await visiting(node)
    page = await visit.go("system")
    await expect(visit.heading("System")).to_be_visible()
    assert visit.faults == []
    refused = page.wait_for_event("console", lambda message: "Content Security Policy" in message.text)
    asking = asyncio.ensure_future(refused)
    await page.evaluate("url => fetch(url).catch(() => null)", target.url)
    await asking
    assert any("Content Security Policy" in fault for fault in visit.faults)
    assert target.count == 0
    await page.goto(target.url)
    assert f"left the origin: {target.url}/" in visit.faults
    visit.forget()
