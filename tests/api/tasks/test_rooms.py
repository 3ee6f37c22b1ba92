"""The surface by itself: what it may know, and the words it uses."""

import ast
from pathlib import Path

import ksana
from ksana.api import tasks

SOURCE = Path(ksana.__file__).parent
PAGE = SOURCE.parents[1] / "docs" / "tasks.md"


def imports_of(*paths: Path) -> set[str]:
    """The modules of ours that these files import."""
    found: set[str] = set()
    for path in paths:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module:
                found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
            elif isinstance(node, ast.Import):
                found |= {alias.name for alias in node.names}
    return {name for name in found if name.startswith("ksana.")}


def test_scheduler_executor_and_callbacks_meet_only_in_the_engine() -> None:
    """C-16: who plans knows no target and no surface, who executes knows neither either, who hears callbacks knows no
    loop and no store."""
    engine = SOURCE / "engine"
    for loop in (engine / "planner.py", engine / "runner.py", engine / "run_verbs.py"):
        foreign = ("ksana.api", "ksana.targets", "ksana.stores", "ksana.observe")
        assert not {name for name in imports_of(loop) if name.startswith(foreign)}, loop
    surface = imports_of(*(SOURCE / "api" / "tasks").glob("*.py"))
    assert not {name for name in surface if name.startswith(("ksana.stores", "ksana.targets", "ksana.app"))}
    assert {name for name in surface if name.startswith("ksana.engine.")} <= {
        "ksana.engine.contexts",
        "ksana.engine.contexts.Contexts",
    }


def test_the_page_and_the_api_speak_the_documents_words() -> None:
    """C-2: task, run, synchronous, asynchronous, callback, misfire."""
    page = PAGE.read_text().lower()
    assert [
        word for word in ("task", "run", "synchronous", "asynchronous", "callback", "misfire") if word not in page
    ] == []
    summaries = {route.summary for route in tasks.surface().routes}
    assert {"Create a task", "Trigger a task", "List the runs of a task", "Call back by token"} <= summaries
