"""Installs the peers under .bench/, once per list of pinned versions; where that cannot be done, their rows say so."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

from fresh import HERE, FailedError, say
from places import SCRATCH

_PINNED = HERE / "peers.txt"
_PACKAGES = HERE / "peers" / "package.json"
_PATIENCE = 600


def python() -> Path:
    """The interpreter that has the Python peers."""
    return _or_failed(_python())


def node_modules() -> Path:
    """The folder that has the Node peers."""
    return _or_failed(_node())


def _or_failed(found: Path | str) -> Path:
    if isinstance(found, str):
        raise FailedError(found)
    return found


# A failure is remembered as well: asking again would only cost the same time again.
@cache
def _python() -> Path | str:
    folder = SCRATCH / "py"
    interpreter = folder / "bin" / "python"

    def install() -> None:
        _run(sys.executable, "-m", "venv", "--clear", str(folder))
        _run(str(interpreter), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r", str(_PINNED))

    return _once(folder, _PINNED, install) or interpreter


@cache
def _node() -> Path | str:
    folder = SCRATCH / "node"
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        return "node is not installed"

    def install() -> None:
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copy(_PACKAGES, folder)
        _run(npm, "install", "--loglevel=error", "--no-fund", "--no-audit", "--prefix", str(folder))

    return _once(folder, _PACKAGES, install) or folder / "node_modules"


def _once(folder: Path, pinned: Path, install: Callable[[], None]) -> str | None:
    """Install unless these versions are there; answer why not, if not."""
    stamp, wanted = folder / "installed", hashlib.sha256(pinned.read_bytes()).hexdigest()
    if stamp.exists() and stamp.read_text() == wanted:
        return None
    say(f"installing the peers of {pinned.name} into {folder}")
    try:
        install()
    except (OSError, subprocess.SubprocessError) as error:
        shutil.rmtree(folder, ignore_errors=True)
        return f"not installed ({_reason(error)})"
    stamp.write_text(wanted)
    return None


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=_PATIENCE)


def _reason(error: Exception) -> str:
    said = error.stderr if isinstance(error, subprocess.CalledProcessError) and error.stderr else str(error)
    lines = [line.strip() for line in str(said).splitlines() if "err" in line.lower()]
    return (lines or [str(error)])[0][:120]
