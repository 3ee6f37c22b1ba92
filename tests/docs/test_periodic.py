"""Every block of docs/periodic.md, run from top to bottom in one program; a `text` block shows what the one before it
prints. Ids and keys are made this test's own, because the Redis is shared."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path
from types import CodeType
from typing import Any

import pytest

DOCUMENT = Path(__file__).parents[2] / "docs" / "periodic.md"
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_NAMES = ("cleanup_hourly", "weekly_report", "daily_backup", "nightly-import")
_URL = "redis://127.0.0.1:6379/0"


async def execute(code: str, names: dict[str, Any]) -> None:
    """Run a block that may await at its top level."""
    tree = ast.parse(code, str(DOCUMENT))
    compiled: CodeType = compile(tree, str(DOCUMENT), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    result = eval(compiled, names)
    if inspect.isawaitable(result):
        await result


async def test_what_the_document_shows_is_what_happens(
    redis_url: str,
    fresh_redis_prefix: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """B-2, B-75: the usage of the document, ported."""
    monkeypatch.chdir(tmp_path)
    text = DOCUMENT.read_text().replace(_URL, redis_url)
    for name in _NAMES:
        text = text.replace(f'"{name}"', f'"{fresh_redis_prefix[:-1]}_{name}"')
        text = text.replace(f"schedules:{name}", f"schedules:{fresh_redis_prefix[:-1]}_{name}")
    blocks = _BLOCK.findall(text)
    names: dict[str, Any] = {}
    for index, (language, content) in enumerate(blocks):
        if language == "python":
            await execute(content, names)
            following = blocks[index + 1] if index + 1 < len(blocks) else ("", "")
            printed = capsys.readouterr().out
            assert printed == (following[1] if following[0] == "text" else ""), content
    await names["redis"].aclose()


def test_its_links_lead_somewhere() -> None:
    text = DOCUMENT.read_text()
    headings = {re.sub(r"[^\w-]", "", line.strip("# ").lower().replace(" ", "-")) for line in text.splitlines()}
    assert [anchor for anchor in re.findall(r"\]\(#([^)]+)\)", text) if anchor not in headings] == []
