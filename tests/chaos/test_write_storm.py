"""A storm of changes on the JSON file, with the power cut again and again: nothing acknowledged is lost, and whoever
reads the file at any moment reads a whole one. (K-59, K-60, K-96, K-101)"""

import asyncio
import json
import multiprocessing
import os
import re
import signal
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerProcess
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any

import aiohttp

KILLS = 20
PER_LIFE = 60
SENDERS = 8
JOB = {
    "type": "http",
    "http": {"method": "POST", "url": "http://127.0.0.1:9/never"},
    "schedule": {"kind": "every", "every": "1h"},
}


class Storm:
    """Creates jobs and renames old ones, and remembers what was acknowledged: by id, the newest name."""

    def __init__(self) -> None:
        self.names: dict[str, str] = {}
        self.under_way: dict[str, set[str]] = {}
        self.changes = 0

    async def rage(self, server: "Server") -> None:
        """Have many send changes at once until enough are acknowledged, then cut the power under the rest."""
        wanted, enough = self.changes + PER_LIFE, asyncio.Event()
        async with aiohttp.ClientSession(server.url) as session:
            senders = [asyncio.ensure_future(self._send(session, wanted, enough)) for _ in range(SENDERS)]
            await asyncio.wait_for(enough.wait(), 30)
            server.kill()
            await asyncio.gather(*senders)

    async def _send(self, session: aiohttp.ClientSession, wanted: int, enough: asyncio.Event) -> None:
        """Send one change after the other, until the server is gone."""
        while True:
            try:
                await self._change(session)
            except aiohttp.ClientError:
                return
            if self.changes >= wanted:
                enough.set()

    async def _change(self, session: aiohttp.ClientSession) -> None:
        number = sum(map(len, self.under_way.values()))
        known = list(self.names)
        id = f"job-{number}" if number % 3 or not known else known[number % len(known)]
        name = f"name {number}"
        self.under_way.setdefault(id, set()).add(name)
        body = {"name": name} if id in self.names else {**JOB, "id": id, "name": name}
        method, path = ("PATCH", f"/jobs/{id}") if id in self.names else ("POST", "/jobs")
        async with session.request(method, path, json=body) as answer:
            assert answer.status in (200, 201), await answer.text()
            self.names[id] = (await answer.json())["name"]
            self.changes += 1

    def check(self, jobs: list[dict[str, Any]]) -> None:
        """Everything acknowledged is there; a name is the one acknowledged last, or one that was on its way."""
        found = {job["id"]: job["name"] for job in jobs}
        assert self.names.keys() - found.keys() == set()
        for id, name in found.items():
            assert name in self.under_way[id]
        # What was in the air when the power went may or may not have happened; from here on it is known.
        self.names.update(found)


class Server:
    """A real server in a process of its own, forked from one that has imported everything: of the second that a start
    takes, nearly all is importing, and there are many starts here."""

    def __init__(self, process: ForkServerProcess) -> None:
        self._process = process
        self.url = ""

    async def listens(self, output: asyncio.StreamReader) -> None:
        """Wait for the address the server says it listens on."""
        said = ""
        while (found := re.search(r"http://[\w.]+:\d+", said)) is None:
            line = (await asyncio.wait_for(output.readline(), 30)).decode()
            assert line, f"it ended; it said:\n{said}"
            said += line
        self.url = found.group()

    def kill(self) -> None:
        self._process.kill()
        self._process.join()

    async def stop(self) -> int | None:
        self._process.terminate()
        await asyncio.to_thread(self._process.join, 30)
        return self._process.exitcode


@asynccontextmanager
async def serving(directory: Path) -> AsyncIterator[Server]:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["ksana.app", "ksana.cli.serve", "ksana.stores.json.store", "uvicorn", __name__])
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_serve, args=(directory, theirs))
    process.start()
    theirs.close()
    server = Server(process)
    output = asyncio.StreamReader()
    pipe, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(output), os.fdopen(os.dup(ours.fileno()), "rb")
    )
    ours.close()
    try:
        await server.listens(output)
        # Whatever it says from here on is taken from it, so that it never waits for a reader.
        rest = asyncio.ensure_future(output.read())
        yield server
        server.kill()
        await rest
    finally:
        server.kill()
        process.close()
        pipe.close()


def _serve(directory: Path, output: Connection) -> None:
    from ksana.cli import main

    # The one it was forked from does not know these signals.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.dup2(output.fileno(), 1)
    os.dup2(output.fileno(), 2)
    output.close()
    sys.argv = ["ksana", "serve", "--port", "0", "--store", f"json:{directory}", "--log-level", "info"]
    main()


def _watch(path: Path, stop: Event, broken: Any) -> None:
    seen = 0
    # Several times a save, and not so often that reading takes the processor from those who write.
    while not stop.wait(0.002):
        try:
            text = path.read_bytes()
            json.loads(text)
            seen += 1
        except FileNotFoundError:
            if seen:
                broken.put("the file was gone")
                return
        except ValueError as error:
            broken.put(f"{error}: {text[:200]!r}")
            return
    broken.put("" if seen else "nothing was ever read")


@contextmanager
def watched(path: Path) -> Iterator[None]:
    """Somebody else reads the file over and over, and never finds it broken or gone."""
    context = multiprocessing.get_context("spawn")
    stop, broken = context.Event(), context.Queue()
    watcher = context.Process(target=_watch, args=(path, stop, broken), daemon=True)
    watcher.start()
    try:
        yield
    finally:
        stop.set()
    assert broken.get(timeout=30) == ""
    watcher.join(30)
    watcher.close()


async def test_a_storm_of_changes_survives_twenty_power_cuts(tmp_path: Path) -> None:
    directory = tmp_path / "data"
    storm = Storm()
    with watched(directory / "jobs.json"):
        for _ in range(KILLS):
            async with serving(directory) as server:
                await storm.rage(server)
            storm.check(json.loads((directory / "jobs.json").read_bytes())["jobs"])
        async with serving(directory) as server:
            async with aiohttp.ClientSession(server.url) as session, session.get("/jobs") as answer:
                storm.check(await answer.json())
            assert await server.stop() == 0
    assert storm.changes >= KILLS * PER_LIFE
    assert not list(directory.glob("jobs.bad*"))
