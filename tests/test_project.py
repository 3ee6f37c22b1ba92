"""Promises of the project about itself, rather than of the program."""

import ast
import importlib.resources
import subprocess
import tomllib
from pathlib import Path

import pytest

import ksana

ROOT = Path(__file__).parent.parent
PUBLIC_NAMES = ["Ack", "AsyncClient", "Client", "Item", "Ksana", "Retry", "Run", "__version__"]

# Spelled in halves, so that this file does not contain what it looks for.
REGISTRY_HOSTS = [name + end for name, end in (("pypi", ".org"), ("pythonhosted", ".org"), ("npmjs", ".org"))]


def project_files() -> list[Path]:
    """Every file that is or would be committed."""
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=False,
    )
    if listing.returncode != 0:
        pytest.skip("this is no git checkout")
    names = listing.stdout.decode().split("\0")
    return [path for name in names if name and (path := ROOT / name).is_file()]


def test_the_public_names_are_these_and_in_order() -> None:
    assert ksana.__all__ == PUBLIC_NAMES == sorted(PUBLIC_NAMES)
    assert all(hasattr(ksana, name) for name in PUBLIC_NAMES)


def test_the_package_says_that_it_is_typed() -> None:
    assert importlib.resources.files(ksana).joinpath("py.typed").is_file()


def test_the_version_is_the_same_in_the_package_and_in_the_build_file() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["version"] == ksana.__version__


def test_no_file_names_a_package_registry() -> None:
    naming = [
        path.relative_to(ROOT)
        for path in project_files()
        if any(host.encode() in path.read_bytes() for host in REGISTRY_HOSTS)
    ]
    assert naming == []


def test_every_dependency_is_pinned_without_an_address() -> None:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    assert [line for line in lines if "==" not in line or "/" in line or "@" in line] == []


def test_no_test_sleeps() -> None:
    tests = [path for path in project_files() if path.suffix == ".py" and "tests" in path.relative_to(ROOT).parts]
    # Reading a file as a program takes longer than most tests do, so only those are read that could have a call.
    texts = {path: text for path in tests if "sleep" in (text := path.read_text())}
    sleeping = [
        f"{path.relative_to(ROOT)}:{line}" for path, text in texts.items() for line in lines_that_sleep(ast.parse(text))
    ]
    assert sleeping == []


def lines_that_sleep(tree: ast.AST) -> list[int]:
    """Find calls of anything named sleep, but for `sleep(0)`, which only lets others have a turn."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and called_name(node) == "sleep"]
    return [call.lineno for call in calls if not is_zero(call)]


def called_name(call: ast.Call) -> str | None:
    match call.func:
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name
        case _:
            return None


def is_zero(call: ast.Call) -> bool:
    match call.args:
        case [ast.Constant(value=0)]:
            return True
        case _:
            return False


@pytest.mark.parametrize(
    ("source", "lines"),
    [("time.sleep(1)", [1]), ("await asyncio.sleep(0)", []), ("x()\nsleep(delay)", [2]), ("sleep(0.1)", [1])],
)
def test_a_sleep_is_found_in_any_spelling(source: str, lines: list[int]) -> None:
    assert lines_that_sleep(ast.parse(source)) == lines
