"""Making jobs and acting on many, as a person does it."""

import pytest
from playwright.async_api import expect

from tests.browser.conftest import Visiting
from tests.cli.nodes import Node

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_a_job_is_made_with_a_preview_and_its_runs_appear_by_themselves(node: Node, visiting: Visiting) -> None:
    visit = await visiting(node)
    visit.forgives("status of 400 .*/schedules/preview")
    page = await visit.go("jobs")
    await visit.link("New job").first.click()
    await page.get_by_role("textbox", name="Name", exact=True).fill("browser.beat")

    await visit.button("Cron").click()
    preview = page.get_by_role("region", name="When it fires")
    await page.get_by_label("Cron expression").fill("*/7 * * * *")
    # Sixty is no multiple of seven: the last step of each hour is shorter, and somebody should be told.
    await expect(preview).to_contain_text("4")
    await expect(preview.locator(".lint").first).to_be_visible()
    await expect(preview.get_by_role("listitem")).to_have_count(10)
    await page.get_by_label("Cron expression").fill("61 * * * *")
    await expect(preview.locator(".problem")).to_be_visible()

    await visit.button("Interval").click()
    await page.get_by_label("Every", exact=True).fill("1s")
    await expect(preview.get_by_role("listitem").first).to_contain_text("UTC")
    await page.get_by_label("Kind").select_option("noop")
    await visit.button("Create").click()

    await expect(visit.heading("browser.beat")).to_be_visible()
    await page.get_by_role("tab", name="Runs").click()
    runs = page.get_by_role("table")
    await expect(runs.get_by_text("success").nth(1)).to_be_visible()
    assert visit.loads == 1


async def test_a_definition_that_cannot_be_says_which_field_to_mend(node: Node, visiting: Visiting) -> None:
    visit = await visiting(node)
    visit.forgives("status of 4")
    page = await visit.go("jobs/new")
    await page.get_by_role("textbox", name="Name", exact=True).fill("browser.broken")
    await page.get_by_label("Kind").select_option("http")
    address = page.get_by_label("Address")
    await address.fill("nowhere")
    await visit.button("Create").click()
    await expect(address).to_have_attribute("aria-invalid", "true")
    await expect(address).to_be_focused()


async def test_many_jobs_are_paused_at_once_with_progress(node: Node, visiting: Visiting) -> None:
    for number in range(12):
        body = {
            "name": f"many {number:02}",
            "target": {"kind": "noop"},
            "schedule": {"kind": "every", "every": "1h"},
        }
        assert (await node.call("POST", "/api/v2/jobs", body))[0] == 201
    visit = await visiting(node)
    page = await visit.go("jobs?name=many&page_size=10")
    await page.get_by_label("Select all rows of this page").check()
    await visit.button("Take all 12 that match").click()
    bulk = page.get_by_role("region", name="Act on the selected")
    await visit.button("Pause", bulk).click()
    question = page.get_by_role("dialog", name="Pause 12 jobs?")
    await question.get_by_label("Reason").fill("moving house")
    await visit.button("Pause", question).click()
    await expect(page.get_by_text("Pause: 12 of 12")).to_be_visible()
    await expect(page.get_by_role("table").get_by_text("paused")).to_have_count(10)
    _, paused = await node.call("GET", "/api/v2/jobs?name=many&enabled=false")
    assert paused["total"] == 12
    _, told = await node.call("GET", f"/api/v2/audit?subject=job&subject_id={paused['items'][0]['id']}")
    assert told["items"][0]["reason"] == "moving house"


async def test_a_cron_expression_is_said_in_words_with_its_zone_in_the_language_of_the_console(
    node: Node, visiting: Visiting
) -> None:
    schedule = {"kind": "cron", "expr": "30 9 * * 1-5", "timezone": "Asia/Shanghai"}
    body = {"name": "worded", "target": {"kind": "noop"}, "schedule": schedule}
    assert (await node.call("POST", "/api/v2/jobs", body))[0] == 201
    for locale, words in (
        ("en-GB", "At 09:30 from Monday through Friday (Asia/Shanghai)"),
        ("zh-CN", "每周一至周五 09:30（上海时间）"),
    ):
        visit = await visiting(node, locale=locale)
        page = await visit.go("jobs?name=worded")
        row = page.get_by_role("row").filter(has_text="worded")
        await expect(row).to_contain_text("30 9 * * 1-5")
        await expect(row).to_contain_text(words)


async def test_a_job_is_paused_until_an_instant_and_says_so(node: Node, visiting: Visiting) -> None:
    schedule = {"kind": "cron", "expr": "0 9 * * *", "timezone": "Asia/Shanghai"}
    body = {"name": "napping", "target": {"kind": "noop"}, "schedule": schedule}
    _, made = await node.call("POST", "/api/v2/jobs", body)
    visit = await visiting(node)
    page = await visit.go(f"jobs/{made['id']}")
    await visit.button("Pause").click()
    asked = page.get_by_role("dialog", name="Pause “napping”?")
    await asked.get_by_label("Reason").fill("moving house")
    await asked.get_by_label("Until").fill("2999-01-01T08:00:00+08:00")
    await visit.button("Pause", asked).click()
    await expect(page.locator(".meta")).to_contain_text("until 2999-01-01 00:00:00 UTC")
    await expect(page.locator(".meta")).to_contain_text("moving house")
    await visit.link("Jobs").first.click()
    row = page.get_by_role("row").filter(has_text="napping")
    await expect(row).to_contain_text("until 2999-01-01 00:00:00 UTC")
    _, paused = await node.call("GET", f"/api/v2/jobs/{made['id']}")
    assert (paused["paused_until"], paused["pause_reason"]) == ("2999-01-01T00:00:00.000Z", "moving house")
    await node.call("POST", f"/api/v2/jobs/{made['id']}/pause", {"until": "1s"})
    await expect(row.get_by_text("paused")).to_have_count(0)
