"""Real nodes for the tests: `ksana serve` and `ksana worker` as processes, and a caller for their HTTP side."""

from __future__ import annotations

import asyncio
import json
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from ksana.config.fields import FIELDS
from tests.kit.processes import DEADLINE, Process, ksana, spawned_ksana

BARE_NAMES = tuple(name for field in FIELDS for name in field.bare)
# An empty variable counts as unset, so what this machine has exported does not reach the node.
_NOTHING_GIVEN = dict.fromkeys(BARE_NAMES, "")


class Node:
    """A server and its address."""

    def __init__(self, process: Process, url: str) -> None:
        self.process = process
        self.url = url

    async def call(
        self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None
    ) -> tuple[int, Any]:
        """The status and the JSON of an answer."""
        return await asyncio.to_thread(_call, method, self.url + path, body, headers or {})

    async def until(self, path: str, is_so: Any) -> Any:
        """Look at a path until what it shows is so; the way there and back is pause enough."""
        async with asyncio.timeout(DEADLINE):
            while True:
                _, seen = await self.call("GET", path)
                if is_so(seen):
                    return seen


def _call(method: str, url: str, body: Any, headers: Mapping[str, str]) -> tuple[int, Any]:
    data = None if body is None else json.dumps(body).encode()
    sent = {"Content-Type": "application/json", **headers} if data is not None else dict(headers)
    request = urllib.request.Request(url, data, sent, method=method)
    try:
        with urllib.request.urlopen(request, timeout=DEADLINE) as answer:
            return answer.status, json.loads(answer.read() or b"null")
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.loads(error.read() or b"null")


def command(
    *arguments: str, directory: Path, environment: Mapping[str, str] | None = None, is_spawned: bool = False
) -> Any:
    """Start `ksana` without any settings of this machine."""
    start = spawned_ksana if is_spawned else ksana
    return start(*arguments, directory=directory, environment={**_NOTHING_GIVEN, **(environment or {})})


@asynccontextmanager
async def serving(
    directory: Path, *arguments: str, environment: Mapping[str, str] | None = None, is_spawned: bool = False
) -> AsyncIterator[Node]:
    """A server on a free port of loopback."""
    words = ("serve", "--port", "0", *arguments)
    async with command(*words, directory=directory, environment=environment, is_spawned=is_spawned) as process:
        yield Node(process, await process.url())
