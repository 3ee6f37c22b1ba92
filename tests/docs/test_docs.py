"""Every command and request of the pages about the API, run from top to bottom on a fresh server; those of
docs/stores.md without one, because data moves while nobody works on it.

A `json` block after an `sh` block shows the answer to its last request, shortened: what it shows must be there. The id
of a chain's run stands for whichever id that answer has, from there on. A request that is meant to fail ends in a
comment with its status.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shlex
import sys
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from ksana.config import mask_url
from tests.cli.nodes import serving
from tests.kit.processes import DEADLINE
from tests.services.databases import FreshDatabase

ROOT = Path(__file__).parents[2]
_SERVED = ("docs/api.md", "docs/timers.md", "docs/tasks.md", "docs/chains.md", "docs/queue.md")
TEXTS = {ROOT / name: (ROOT / name).read_text() for name in _SERVED}
STORES = ROOT / "docs" / "stores.md"
_DATABASE = "postgresql://ksana:secret@db.example.com/ksana"
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_DEFAULT = "127.0.0.1:7100"
_STATUS = re.compile(r" # (\d{3})$")
_SOME_RUN = re.compile(r"4be7c6c1-59d2-4f60-0000-[0-9]{12}")

# Done by the tests of the tasks surface, on a port of their own.
_DONE_ELSEWHERE = {"ksana serve --config config.yaml"}


class Step(NamedTuple):
    """The commands of a block, and the answer shown to the last."""

    commands: list[str]
    shown: Any


def steps(text: str) -> Iterator[Step]:
    """The blocks of a document that are meant to be run."""
    blocks = _BLOCK.findall(text)
    for index, (language, content) in enumerate(blocks):
        following = blocks[index + 1] if index + 1 < len(blocks) else ("", "")
        if language in ("sh", "console"):
            yield Step(commands(content), json.loads(following[1]) if following[0] == "json" else None)


def commands(block: str) -> list[str]:
    """The commands of a block; one goes on over the lines of a quoted text."""
    found: list[str] = []
    begun = ""
    for line in block.splitlines():
        begun = f"{begun}\n{line}" if begun else line
        if begun.count("'") % 2 == 0 and begun.strip():
            found.append(begun)
            begun = ""
    assert not begun, f"a quote is not closed in {block!r}"
    return found


def is_shown(shown: Any, seen: Any) -> bool:
    """Whether what a document shows is in an answer; of an instant only that it is one."""
    if isinstance(shown, dict):
        return isinstance(seen, dict) and all(name in seen and is_shown(shown[name], seen[name]) for name in shown)
    if isinstance(shown, list):
        enough = isinstance(seen, list) and len(seen) >= len(shown)
        return enough and all(is_shown(one, other) for one, other in zip(shown, seen, strict=False))
    if isinstance(shown, str) and isinstance(seen, str) and shown != seen:
        return bool(_SOME_RUN.fullmatch(shown)) or (is_instant(shown) and is_instant(seen))
    return bool(shown == seen)


def run_ids(shown: Any, seen: Any) -> Iterator[tuple[str, str]]:
    """The ids of runs a document shows, each with the one it stands for."""
    if isinstance(shown, dict):
        for name in shown:
            yield from run_ids(shown[name], seen[name])
    elif isinstance(shown, str) and _SOME_RUN.fullmatch(shown):
        yield shown, seen


def with_ids(step: Step, known: dict[str, str]) -> Step:
    """The step with the ids of this server."""

    def real(text: str) -> str:
        return _SOME_RUN.sub(lambda found: known.get(found[0], found[0]), text)

    return Step([real(command) for command in step.commands], json.loads(real(json.dumps(step.shown))))


def is_instant(text: str) -> bool:
    try:
        return datetime.fromisoformat(text).tzinfo is not None
    except ValueError:
        return False


async def run(command: str, directory: Path) -> tuple[int, str]:
    """Run a command in a shell that knows `ksana`, and give its exit code and output."""
    prelude = f'ksana() {{ {shlex.quote(sys.executable)} -m ksana "$@"; }}\ncurl() {{ command curl -sS "$@"; }}\n'
    child = await asyncio.create_subprocess_exec(
        "bash",
        "-euo",
        "pipefail",
        "-c",
        prelude + command,
        cwd=directory,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "NO_PROXY": "*"},
    )
    out, _ = await asyncio.wait_for(child.communicate(), DEADLINE)
    assert child.returncode is not None
    return child.returncode, out.decode()


async def request(command: str, address: str, directory: Path) -> Any:
    """Make the request of a curl command, see that its status is the one meant, and give its JSON."""
    meant = _STATUS.search(command)
    plain = _STATUS.sub("", command).replace(_DEFAULT, address)
    code, out = await run(f"{plain} -w '\\n%{{http_code}}'", directory)
    assert code == 0, command
    body, _, status = out.rpartition("\n")
    assert (status == meant[1]) if meant else status.startswith("2"), f"{command}\nwas answered with {out}"
    try:
        return json.loads(body.replace(address, _DEFAULT))
    except ValueError:
        return body


async def check(step: Step, address: str, directory: Path) -> Any:
    """Run the commands of a step, see that the last is answered as shown, and give the answer."""
    seen: Any = None
    for command in step.commands:
        if command.startswith("curl "):
            seen = await request(command, address, directory)
        elif command not in _DONE_ELSEWHERE:
            assert command.startswith("ksana "), f"nothing here knows how to run {command!r}"
            code, out = await run(command, directory)
            assert code == 0, command
            seen = json.loads(out) if "--json" in command else out
    if step.shown is None:
        return seen
    # What a reader looks at a moment later may not be there at once: a question may be asked again.
    last = step.commands[-1]
    is_question = last.startswith("curl ") and not re.search(r"--json|-X ", last)
    with suppress(TimeoutError):
        async with asyncio.timeout(DEADLINE):
            while is_question and not is_shown(step.shown, seen):
                seen = await request(last, address, directory)
    assert is_shown(step.shown, seen), f"{last}\nwas answered with {json.dumps(seen)}"
    return seen


@pytest.mark.parametrize("document", TEXTS, ids=lambda path: path.name)
async def test_what_a_document_shows_is_what_happens(document: Path, tmp_path: Path) -> None:
    known: dict[str, str] = {}
    async with serving(tmp_path) as node:
        for written in steps(TEXTS[document]):
            step = with_ids(written, known)
            known |= run_ids(step.shown, await check(step, node.url.removeprefix("http://"), tmp_path))


async def test_data_moves_as_the_document_shows(fresh_postgres_database: FreshDatabase, tmp_path: Path) -> None:
    url = fresh_postgres_database()
    text = STORES.read_text().replace(_DATABASE, url).replace("sqlite:///data", f"sqlite:///{tmp_path}/data")
    for step in steps(text.replace(mask_url(_DATABASE), mask_url(url))):
        await check(step, "", tmp_path)
