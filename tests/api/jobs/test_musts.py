"""Every K number of the requirements is shown by a test that names it, or stands here with the reason why not.

A test shows K-12 by writing K-12 into its docstring.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
ALL = {f"K-{n}" for n in range(1, 111)}

BY_THE_JSON_STORE = {
    "K-14": "its top level",
    "K-15": "updated_at",
    "K-30": "start from a file, also one written by hand",
    "K-59": "temporary file, fsync, rename",
    "K-60": "kill -9 in a storm of writes",
    "K-61": "writes one after the other, reads from memory",
    "K-62": "a file that cannot be parsed",
    "K-64": "rename over an existing file fails",
    "K-65": "no file yet",
    "K-96": "atomic, recovers",
    "K-101": "consistent at high frequency",
}
"""What only the store of `jobs.json` can show."""

NOT_SHOWN = {
    "K-7": "a non-goal; the other stores share work between nodes all the same: tests/engine/test_nodes.py",
    "K-9": "a non-goal",
    "K-10": "a non-goal of this document",
    "K-89": "by construction: .importlinter keeps logging out of the domain; stores and api hold no logger for runs",
    "K-90": "inspection, and the test below; nobody has run it on Windows",
    "K-91": "by construction: clock, store and target are given to the engine, and timers.py gives it its own",
    "K-106": "for later in the document; every store but the files has it: tests/engine/test_nodes.py",
    "K-107": "for later in the document; alerts of failed runs: tests/engine/test_alerts.py",
    "K-108": "for later in the document; /api/v2 has other targets: tests/targets",
    "K-109": "for later in the document; keys and signatures: tests/api/v2/test_scopes.py, tests/targets/http",
    "K-110": "for later in the document; `ksana worker` is a second program: tests/cli/test_serve.py",
}

POSIX_ONLY = {"fcntl", "grp", "posix", "pty", "pwd", "resource", "syslog", "termios", "tty", "uvloop"}


def named_under(*folders: str) -> set[str]:
    """The numbers that tests under these folders name in the docstring of their function or module."""
    found: set[str] = set()
    for path in (path for folder in folders for path in (ROOT / folder).rglob("test_*.py") if path != Path(__file__)):
        module = ast.parse(path.read_text())
        functions = [node for node in module.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
        for node in (module, *(function for function in functions if function.name.startswith("test_"))):
            found |= set(re.findall(r"K-\d+", ast.get_docstring(node) or ""))
    return found


def test_every_number_is_shown_or_stands_here_with_a_reason() -> None:
    shown = named_under("tests/api/jobs")
    assert sorted(ALL - shown - BY_THE_JSON_STORE.keys() - NOT_SHOWN.keys()) == []
    assert sorted(shown & NOT_SHOWN.keys()) == []
    assert sorted(BY_THE_JSON_STORE.keys() - named_under("tests/stores", "tests/chaos")) == []


def test_nothing_imports_what_only_posix_has_when_it_is_loaded() -> None:
    """The program starts on Windows too."""
    found = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in (ROOT / "src").rglob("*.py")
        for name in _imported_at_load(path)
        if name in POSIX_ONLY
    ]
    assert found == []


def _imported_at_load(path: Path) -> list[str]:
    names: list[str] = []
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.Import):
            names += [alias.name.partition(".")[0] for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.append(node.module.partition(".")[0])
    return names
