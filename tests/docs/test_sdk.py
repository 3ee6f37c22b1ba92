"""Every block of docs/client.md, on a fresh server, the request of docs/celery.md, on the same, and the tests of
docs/testing.md. A `text` block shows what the one before it prints."""

from __future__ import annotations

import asyncio
import json
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from ksana.testing.rehearsal import Rehearsal
from tests.cli.nodes import serving
from tests.docs.test_docs import is_shown

DOCS = Path(__file__).parents[2] / "docs"
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_DEFAULT = "http://127.0.0.1:7100"


def blocks(name: str) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = _BLOCK.findall((DOCS / name).read_text())
    return found


async def test_the_client_does_what_its_page_shows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    parts = blocks("client.md")
    names: dict[str, Any] = {}
    async with serving(tmp_path) as node:
        for index, (language, content) in enumerate(parts):
            if language != "python":
                continue
            code = compile(content.replace(_DEFAULT, node.url), "client.md", "exec")
            await asyncio.to_thread(exec, code, names)
            following = parts[index + 1] if index + 1 < len(parts) else ("", "")
            assert capsys.readouterr().out == (following[1] if following[0] == "text" else ""), content
        [request, shown] = [content for language, content in blocks("celery.md") if language in ("sh", "json")]
        status, made = await node.call("POST", "/api/v2/jobs", json.loads(request.split("'")[1]))
    assert (status, is_shown(json.loads(shown), made)) == (201, True)


def test_the_tests_of_the_page_about_tests_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    shop, *tests = [content for language, content in blocks("testing.md") if language == "python"]
    module = ModuleType("shop")
    exec(compile(shop, "testing.md", "exec"), module.__dict__)
    monkeypatch.setitem(sys.modules, "shop", module)
    names: dict[str, Any] = {}
    for content in tests:
        exec(compile(content, "testing.md", "exec"), names)
    found = [value for name, value in names.items() if name.startswith("test_")]
    assert len(found) == 5
    for test in found:
        with Rehearsal() as ksana:
            test(ksana)
