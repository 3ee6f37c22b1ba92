"""The built files of the console, as they are sent: read once, with the gzip made at build time beside each."""

from __future__ import annotations

from functools import cache
from importlib import resources
from pathlib import PurePath
from typing import Final, NamedTuple

_MEDIA_TYPES: Final = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}


class File(NamedTuple):
    """A file and its compressed twin."""

    media_type: str
    plain: bytes
    gzipped: bytes


@cache
def page() -> str:
    """The one page all of the console lives in."""
    return (resources.files("ksana.console") / "dist" / "index.html").read_text("utf-8")


@cache
def assets() -> dict[str, File]:
    """Every other file by its name, which holds a hash of its content."""
    folder = resources.files("ksana.console") / "dist" / "assets"
    found = {entry.name: entry.read_bytes() for entry in folder.iterdir()}
    return {
        name: File(_MEDIA_TYPES[PurePath(name).suffix], content, found[f"{name}.gz"])
        for name, content in found.items()
        if not name.endswith(".gz")
    }
