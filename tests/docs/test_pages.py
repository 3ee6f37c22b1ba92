"""The README, the tutorial, the how-tos and the explanations: what they say is done, what they name exists."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import click
import pytest

from ksana.api.reference import render_api_reference
from ksana.cli import command as ksana_command
from ksana.config.fields import FIELDS
from tests.cli.nodes import serving
from tests.docs.pages import Reader, blocks, commands
from tests.docs.test_docs import ROOT

DOCS = ROOT / "docs"
FOLLOWED = [
    ROOT / "README.md",
    DOCS / "tutorial.md",
    *sorted((DOCS / "how-to").glob("*.md")),
    *sorted((DOCS / "explanation").glob("*.md")),
]
TEXTS = {page: page.read_text("utf-8") for page in FOLLOWED}
MIRRORS = {ROOT / "README.zh-CN.md": ROOT / "README.md", DOCS / "zh-CN" / "tutorial.md": DOCS / "tutorial.md"}
EVERY_PAGE = [*sorted(ROOT.glob("*.md")), *sorted(DOCS.rglob("*.md"))]
# Programs of other people that a page may tell the reader to use.
FOREIGN = {"docker", "kubectl", "helm", "systemctl", "journalctl", "python3", "cp", "install", "sqlite3"}
_VARIABLE = re.compile(r"\bKSANA_[A-Z_]+\b")
_SETTINGS = {name for field in FIELDS for name in field.env} | {"KSANA_URL", "KSANA_KEY", "KSANA_CONFIG"}
# Variables given to one command, and what `ksana` is asked where it is the command.
_GIVEN = re.compile(r"^(?:[A-Z_]+=\S+ )+", re.MULTILINE)
_ASKED = re.compile(r"(?:^|\$\(|/bin/|--rm )ksana ((?:[a-z][\w-]* ?)+)", re.MULTILINE)
_TEST_ONLY = re.compile(r"KSANA_TEST_")


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("page", [page for page in FOLLOWED if "```sh\n" in TEXTS[page]], ids=name_of)
async def test_what_a_page_says_is_what_happens(page: Path, tmp_path: Path) -> None:
    async with serving(tmp_path) as node:
        await Reader(node, tmp_path).follow(TEXTS[page])


@pytest.mark.parametrize("mirror", MIRRORS, ids=name_of)
def test_a_translation_has_the_same_commands(mirror: Path) -> None:
    def said(page: Path) -> list[tuple[str, str]]:
        found = blocks(page.read_text("utf-8"))
        return [(block.language, re.sub(r" +# .*[^\d\n]$", "", block.content, flags=re.MULTILINE)) for block in found]

    assert said(mirror) == said(MIRRORS[mirror])


@pytest.mark.parametrize("page", EVERY_PAGE, ids=name_of)
def test_links_lead_somewhere(page: Path) -> None:
    text = re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)
    broken = []
    pictures = re.findall(r'(?:src|srcset)="([^"]+)"', text)
    for target in [*re.findall(r"\]\((?!https?:|mailto:)([^)\s]+)\)", text), *pictures]:
        path, _, anchor = target.partition("#")
        place = (page.parent / path) if path else page
        if not place.exists() or (anchor and anchor not in anchors(place)):
            broken.append(target)
    assert broken == []


@cache
def anchors(page: Path) -> set[str]:
    """What headings of a page are called in links."""
    lines = page.read_text("utf-8").splitlines()
    headings = [re.sub(r"\[([^\]]*)\]\([^)]*\)|`", r"\1", line.lstrip("# ")) for line in lines if line.startswith("#")]
    return {re.sub(r"[^\w-]", "", heading.lower().replace(" ", "-")) for heading in headings}


@pytest.mark.parametrize("page", FOLLOWED, ids=name_of)
def test_what_cannot_be_done_here_names_what_exists(page: Path) -> None:
    for block in blocks(TEXTS[page]):
        assert block.language in ("sh", "bash", "json", "text", "python", "yaml"), block
        for line in commands(block.content) if block.language == "bash" else ():
            words = _GIVEN.sub("", line).split()
            assert words[0] in FOREIGN | {"ksana"}, line
            for place in re.findall(r"\bdeploy/[\w./@-]+", line):
                assert (ROOT / place).exists(), place
        if block.language in ("sh", "bash"):
            for asked in _ASKED.findall(_GIVEN.sub("", block.content)):
                assert is_command(asked.split()), asked


def is_command(words: list[str]) -> bool:
    """Whether these words begin with a command that `ksana` has."""
    found: click.Command | None = ksana_command
    for word in words:
        if not isinstance(found, click.Group):
            return True
        found = found.get_command(click.Context(found), word)
        if found is None:
            return False
    return True


@pytest.mark.parametrize("page", EVERY_PAGE, ids=name_of)
def test_every_setting_that_is_named_exists(page: Path) -> None:
    named = {name for name in _VARIABLE.findall(page.read_text("utf-8")) if not _TEST_ONLY.match(name)}
    assert named - _SETTINGS - {"KSANA_CHROMIUM"} == set()


def test_the_page_about_requests_is_made_from_the_routes() -> None:
    """If it is not: python -m ksana.api.reference > docs/reference/api.md"""
    assert (DOCS / "reference" / "api.md").read_text("utf-8") == render_api_reference()


def test_every_page_is_in_the_index_for_people_and_in_the_one_for_machines() -> None:
    pages = {page for page in DOCS.rglob("*.md") if page.parent.name != "decisions"}
    for index in (DOCS / "README.md", ROOT / "llms.txt"):
        targets = re.findall(r"\]\(([^)#\s]+)", index.read_text("utf-8"))
        linked = {(index.parent / target).resolve() for target in targets}
        assert all(place.exists() for place in linked)
        assert {name_of(page) for page in pages - linked - {index}} == set()


def test_what_language_models_are_told_of_exists() -> None:
    text = (ROOT / "src" / "ksana" / "api" / "llms.txt").read_text("utf-8")
    known = render_api_reference()
    for method, path in re.findall(r"`(GET|POST) (/[\w/{}]+)", text):
        assert f"`{method} {path}`" in known, path


@pytest.mark.parametrize(
    ("words", "is_so"), [("jobs create", True), ("jobs invent", False), ("explain", True), ("key", True), ("x", False)]
)
def test_commands_are_told_from_inventions(words: str, is_so: bool) -> None:
    assert is_command(words.split()) is is_so
