"""What is committed of the console is what its sources make, and keeps within its budget. Needs no Node."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
WEB = ROOT / "web"
DIST = ROOT / "src" / "ksana" / "console" / "dist"
# The same as in web/vite.config.ts.
SOURCES = ("src", "i18n", "index.html", "package.json", "package-lock.json", "tsconfig.json", "vite.config.ts")
ASSETS = sorted(path for path in (DIST / "assets").iterdir() if path.suffix != ".gz")
NAMESPACES = {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xhtml", "http://www.w3.org/1998/Math/MathML"}


def manifest() -> dict[str, dict[str, str]]:
    read: dict[str, dict[str, str]] = json.loads((DIST / "manifest.json").read_text())
    return read


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def files_under(path: Path) -> list[Path]:
    return [path] if path.is_file() else [each for each in path.rglob("*") if each.is_file()]


def gzipped_kilobytes(suffix: str) -> float:
    return sum(path.stat().st_size for path in (DIST / "assets").glob(f"*{suffix}.gz")) / 1000


def test_the_built_files_are_those_of_the_sources() -> None:
    found = {path.relative_to(WEB).as_posix(): digest(path) for name in SOURCES for path in files_under(WEB / name)}
    assert found == manifest()["sources"], "the console is stale: make web, and commit what it writes"


def test_nobody_changed_a_built_file_by_hand() -> None:
    built = [path for path in files_under(DIST) if path.name != "manifest.json"]
    assert {path.relative_to(DIST).as_posix(): digest(path) for path in built} == manifest()["files"]


@pytest.mark.parametrize("path", ASSETS, ids=lambda path: path.name)
def test_every_file_has_its_gzip_beside_it_and_a_hash_in_its_name(path: Path) -> None:
    assert gzip.decompress(path.with_name(f"{path.name}.gz").read_bytes()) == path.read_bytes()
    assert re.fullmatch(r"[\w-]+-[\w-]{8}\.\w+", path.name)


def test_it_stays_small() -> None:
    assert gzipped_kilobytes(".js") <= 80
    assert gzipped_kilobytes(".css") <= 12


def test_nothing_is_asked_of_another_server() -> None:
    named = {url for path in ASSETS for url in re.findall(r"https?://[\w./-]+", path.read_text())}
    shown_to_people = {"https://example.com/hook"}
    assert named - NAMESPACES - shown_to_people == set()


def test_the_page_holds_no_code_and_no_style() -> None:
    page = (DIST / "index.html").read_text()
    assert not re.search(r"<script(?![^>]*\bsrc=)|<style|\bstyle=|\son\w+=", page)
    assert '<base href="/console/" />' in page


def test_the_lock_names_no_server() -> None:
    packages: dict[str, dict[str, Any]] = json.loads((WEB / "package-lock.json").read_text())["packages"]
    assert [name for name, package in packages.items() if "resolved" in package] == []
