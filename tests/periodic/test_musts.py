"""Every B number of the requirements is shown by a test that names it, or stands here with the reason why not.

A test shows B-12 by writing B-12 into its docstring.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
ALL = {f"B-{n}" for n in range(1, 81)}

NOT_SHOWN = {
    "B-8": "a non-goal",
    "B-9": "a non-goal: a schedule comes from code, and no surface of the API writes one",
    "B-10": "a non-goal: the state is in Redis, under the documented keys",
    "B-76": "for later in the document; jobs of /api/v2 can be changed while they run: tests/api/v2/test_changes.py",
    "B-77": "for later in the document; jobs of /api/v2 can be paused: tests/api/v2/test_jobs.py",
    "B-78": "for later in the document; runs of the core queue have a history: test_core_queue.py",
    "B-79": "for later in the document",
    "B-80": "for later in the document; failed runs raise alerts: tests/engine/test_alerts.py",
}


def named_under(*folders: str) -> set[str]:
    """The numbers that tests under these folders name in the docstring of their function or module."""
    found: set[str] = set()
    for path in (path for folder in folders for path in (ROOT / folder).rglob("test_*.py")):
        module = ast.parse(path.read_text())
        functions = [node for node in module.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
        documented = [function for function in functions if function.name.startswith("test_")]
        # This module's own docstring speaks of numbers in general.
        for node in documented if path == Path(__file__) else (module, *documented):
            found |= set(re.findall(r"B-\d+", ast.get_docstring(node) or ""))
    return found


def test_every_number_is_shown_or_stands_here_with_a_reason() -> None:
    shown = named_under("tests/periodic", "tests/docs")
    assert sorted(ALL - shown - NOT_SHOWN.keys()) == []
    assert sorted(shown & NOT_SHOWN.keys()) == []


def test_what_the_document_wants_measured_is_measured() -> None:
    """B-66, B-74: `make bench ARGS=periodic` takes locks, reads and writes states, and looks at a hundred schedules."""
    run = ast.parse((ROOT / "bench" / "run.py").read_text())
    [parts] = [node.value for node in run.body if isinstance(node, ast.AnnAssign)]
    assert isinstance(parts, ast.Dict)
    assert "periodic" in [key.value for key in parts.keys if isinstance(key, ast.Constant)]
