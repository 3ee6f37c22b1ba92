"""Finds the programs of a database server where distributions put them: some are not on anybody's PATH."""

import os
import shutil
from pathlib import Path

_ELSEWHERE = ("/usr/sbin", "/usr/local/sbin", "/usr/local/bin", "/opt/homebrew/bin", "/usr/libexec")


def _release(directory: Path) -> int:
    return int(directory.parent.name) if directory.parent.name.isdigit() else 0


def find_program(*names: str) -> str | None:
    """Give the first of these programs that exists; the newest PostgreSQL comes first."""
    releases = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=_release, reverse=True)
    path = os.pathsep.join([*map(str, releases), os.environ.get("PATH", os.defpath), *_ELSEWHERE])
    return next((found for name in names if (found := shutil.which(name, path=path))), None)
