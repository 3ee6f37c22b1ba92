"""How the console is served: to browsers, from the package, with nothing but our own files allowed on its pages."""

from __future__ import annotations

import gzip
import re

import pytest
from starlette.responses import PlainTextResponse

from ksana.console import Console
from tests.api.kit.client import Answer, Client

BROWSER = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
CLIENT = Client(Console(PlainTextResponse("the app")))


async def asset_of(page: Answer, suffix: str) -> str:
    [name] = re.findall(rf'"\./(assets/[^"]+\.{suffix})"', page.body.decode())
    return f"/console/{name}"


@pytest.mark.parametrize("path", ["/console/", "/console/jobs/12", "/console/chains/3/runs/4", "/console/no/such"])
async def test_every_place_is_the_one_page(path: str) -> None:
    page = await CLIENT.get(path)
    assert page.status == 200
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert page.headers["cache-control"] == "no-cache"
    assert b'<base href="/console/" />' in page.body


async def test_the_page_lets_only_our_own_files_in() -> None:
    policy = (await CLIENT.get("/console/")).headers["content-security-policy"]
    assert policy.startswith("default-src 'self'")
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy


async def test_files_are_kept_for_ever_and_sent_small() -> None:
    path = await asset_of(await CLIENT.get("/console/"), "js")
    plain = await CLIENT.get(path)
    packed = await CLIENT.get(path, headers={"Accept-Encoding": "br, gzip"})
    assert plain.headers["cache-control"] == packed.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert plain.headers["content-type"] == "text/javascript; charset=utf-8"
    assert packed.headers["content-encoding"] == "gzip"
    assert packed.headers["vary"] == "Accept-Encoding"
    assert gzip.decompress(packed.body) == plain.body


@pytest.mark.parametrize("name", ["none-12345678.js", "../manifest.json", "%2e%2e/manifest.json", ""])
async def test_there_are_no_other_files(name: str) -> None:
    answer = await CLIENT.get(f"/console/assets/{name}")
    assert answer.status == 404
    assert answer.headers["cache-control"] == "no-store"


async def test_the_root_leads_browsers_to_the_console_and_machines_to_the_app() -> None:
    led = await CLIENT.get("/", headers=BROWSER)
    assert (led.status, led.headers["location"]) == (302, "/console/")
    assert (await CLIENT.get("/", headers={"Accept": "application/json"})).body == b"the app"
    assert (await CLIENT.get("/console")).headers["location"] == "/console/"


async def test_everything_else_is_the_apps() -> None:
    for path in ("/jobs", "/consoles", "/api/v2/jobs"):
        assert (await CLIENT.get(path, headers=BROWSER)).body == b"the app"


async def test_the_console_takes_nothing() -> None:
    answer = await CLIENT.post("/console/jobs")
    assert (answer.status, answer.headers["allow"]) == (405, "GET, HEAD")


async def test_under_a_prefix_every_link_has_it() -> None:
    led = await CLIENT.get("/team/ksana/", headers=BROWSER, root_path="/team/ksana")
    assert led.headers["location"] == "/team/ksana/console/"
    page = await CLIENT.get("/team/ksana/console/runs", root_path="/team/ksana")
    assert b'<base href="/team/ksana/console/" />' in page.body
    css = await asset_of(page, "css")
    assert (await CLIENT.get(f"/team/ksana{css}", root_path="/team/ksana")).status == 200
