"""Documents as something to carry out: their blocks in order, and a reader who does what they say.

A block after a line that ends in `NAME`: is saved under that name. The commands of an `sh` block are given one after
the other; `# 404` behind one is the status it is answered with, `# exits with 1` the exit code it ends with. A `json`
block shows the answer to the last, shortened; a `text` block lines of what it prints, with `…` for whatever else is
there. A `bash` block cannot be carried out here; others see that what it names exists.
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
from pathlib import Path
from typing import Any, NamedTuple

from tests.cli.nodes import BARE_NAMES, Node
from tests.docs.test_docs import ROOT, is_shown, request, run
from tests.kit.processes import DEADLINE, ksana, program

_BLOCK = re.compile(r"(?P<before>[^\n]*)\n\n```(?P<language>\w+)\n(?P<content>.*?)^```$", re.DOTALL | re.MULTILINE)
_FILE = re.compile(r"`(?P<name>[\w.-]+\.\w+)`(?:, [^`]*`[^`]*`)?[:：]$")
_EXIT = re.compile(r"\s+# exits with (\d+)$")
_SHELL = re.compile(r"[|<>$;&]")
_DEFAULT = "127.0.0.1:7100"
_DONE_ELSEWHERE = {"ksana serve --host 0.0.0.0"}
"""Done by the tests of `serve`, on a port of their own."""


class Block(NamedTuple):
    """A fenced block, and the file it is saved as, if it is."""

    language: str
    content: str
    file: str | None


def blocks(text: str) -> list[Block]:
    """Every block of a document, in order."""
    found = []
    for match in _BLOCK.finditer(text):
        saved = _FILE.search(match["before"])
        name = saved["name"] if saved and match["language"] not in ("sh", "bash") else None
        found.append(Block(match["language"], match["content"], name))
    return found


def commands(content: str) -> Iterator[str]:
    """The commands of a block; one goes on over the lines of a quoted text, or behind a backslash."""
    begun = ""
    for line in content.splitlines():
        begun = f"{begun}\n{line}" if begun else line
        if begun.count("'") % 2 == 0 and not begun.endswith("\\"):
            if begun.strip():
                yield begun
            begun = ""
    assert not begun, f"a quote is not closed in {content!r}"


class Answer(NamedTuple):
    """What a command printed, and the same as JSON if it is that."""

    text: str
    seen: Any = None


class Reader:
    """Somebody who follows a document, in an empty directory and with a server of their own."""

    def __init__(self, node: Node, directory: Path) -> None:
        self._node = node
        self._address = node.url.removeprefix("http://")
        self._directory = directory
        # To the reader this server is the one at the default port.
        here = {"KSANA_URL": node.url, "KSANA_PORT": node.url.rpartition(":")[2], "KSANA_KEY": "", "NO_PROXY": "*"}
        self._environment = {**dict.fromkeys(BARE_NAMES, ""), **here}

    async def follow(self, text: str) -> None:
        """Do everything a document says, and see that it shows what happens."""
        found = blocks(text)
        for index, block in enumerate(found):
            if block.file is not None:
                (self._directory / block.file).write_text(self._here(block.content), "utf-8")
            elif block.language == "sh":
                following = found[index + 1] if index + 1 < len(found) else Block("", "", None)
                await self._do(list(commands(block.content)), following if following.file is None else None)

    async def _do(self, asked: list[str], shown: Block | None) -> None:
        for command in asked:
            answer = await self.give(command)
        if shown is None or shown.language not in ("json", "text"):
            return
        # What a reader looks at a moment later may not be there at once: a question may be asked again.
        is_question = asked[-1].startswith("curl ") and not re.search(r"--json|-X ", asked[-1])
        with suppress(TimeoutError):
            async with asyncio.timeout(DEADLINE):
                while is_question and not self._is_so(shown, answer):
                    answer = await self.give(asked[-1])
        assert self._is_so(shown, answer), f"{asked[-1]}\nprinted\n{answer.text}\nand not\n{shown.content}"

    def _is_so(self, shown: Block, answer: Answer) -> bool:
        if shown.language == "json":
            return is_shown(json.loads(shown.content), answer.seen)
        printed = [" ".join(line.split()) for line in answer.text.splitlines()]
        return all(any(_pattern(line).fullmatch(one) for one in printed) for line in shown.content.splitlines())

    async def give(self, command: str) -> Answer:
        """Give a command, and see that it ends as it should."""
        meant = _EXIT.search(command)
        plain = _EXIT.sub("", command)
        if plain in _DONE_ELSEWHERE:
            return Answer("")
        first = plain.split()[0]
        if first == "make":
            # Only the plan: carried out, it would install this very environment and run these very tests.
            code, out = await run(f"make -n -C {shlex.quote(str(ROOT))} {plain.split()[1]}", self._directory)
            assert code == 0, command
            return Answer(out)
        if first == "curl":
            seen = await request(plain, self._address, self._directory)
            return Answer(str(seen), seen)
        if first == "python" and plain.endswith(".py"):
            return await self._served(plain.split()[1])
        assert first in ("ksana", "python3"), f"nobody here knows how to {command!r}"
        if first == "python3" or _SHELL.search(re.sub(r"'[^']*'|\"[^\"]*\"", "", plain)):
            code, out = await self._shell(plain)
        else:
            code, out = await self._ksana(shlex.split(self._here(plain))[1:])
        assert code == (int(meant[1]) if meant else 0), f"{command}\nended with {code} and printed\n{out}"
        with suppress(ValueError):
            return Answer(out, json.loads(out))
        return Answer(out)

    async def _ksana(self, words: list[str]) -> tuple[int, str]:
        async with ksana(*words, directory=self._directory, environment=self._environment) as process:
            return await process.ended(), process.output

    async def _shell(self, command: str) -> tuple[int, str]:
        prelude = " ".join(f"{name}={shlex.quote(value)}" for name, value in self._environment.items())
        return await run(f"export {prelude}\n{self._here(command)}", self._directory)

    async def _served(self, file: str) -> Answer:
        """Run a program that serves until it is told to stop, beside the server that is there."""
        environment = {**self._environment, "KSANA_PORT": "0", "KSANA_DATA": "data-of-the-program"}
        path = os.pathsep.join([str(ROOT / "src"), *filter(None, [os.environ.get("PYTHONPATH")])])
        words = (sys.executable, file)
        async with program(*words, directory=self._directory, environment={**environment, "PYTHONPATH": path}) as app:
            await app.url()
            assert await app.stop() == 0, app.output
        return Answer(app.output)

    def _here(self, text: str) -> str:
        return text.replace(_DEFAULT, self._address)


def _pattern(line: str) -> re.Pattern[str]:
    return re.compile(re.escape(" ".join(line.split())).replace(re.escape("…"), ".*"))
