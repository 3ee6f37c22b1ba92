from __future__ import annotations

import re

from tests.api.kit.client import Client
from tests.api.kit.sample import sample_app

CLIENT = Client(sample_app())


async def test_the_page_and_its_files_are_served_by_us_alone() -> None:
    page = await CLIENT.get("/docs")
    assert page.status == 200
    assert page.headers["content-type"].startswith("text/html")
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    for path in re.findall(r'(?:src|href)="([^"]+)"', page.body.decode()):
        assert not path.startswith(("/", "http"))
        assert (await CLIENT.get("/" + path)).status == 200


async def test_nothing_on_the_page_names_another_server_or_holds_inline_code() -> None:
    for path in ("/docs", "/docs/docs.js", "/docs/docs.css"):
        text = (await CLIENT.get(path)).body.decode()
        assert "://" not in text
        assert "innerHTML" not in text
        assert not re.search(r"<script>|<style|style=|\son\w+=", text)


async def test_the_page_follows_the_readers_light() -> None:
    assert b"prefers-color-scheme: dark" in (await CLIENT.get("/docs/docs.css")).body


async def test_the_description_is_served_to_anyone() -> None:
    answer = await CLIENT.get("/openapi.json")
    assert answer.headers["content-type"] == "application/json"
    assert answer.json()["openapi"] == "3.1.0"
