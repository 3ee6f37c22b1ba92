"""`ksana` in processes forked from one that has imported everything: nearly all of what a start costs is importing."""

import asyncio
import multiprocessing
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerProcess
from pathlib import Path

_PRELOADED = [
    "ksana.app",
    "ksana.cli",
    "ksana.stores.json.store",
    "ksana.stores.mysql",
    "ksana.stores.postgres",
    "ksana.stores.sqlite",
    "uvicorn",
    "uvicorn.lifespan.off",
    "uvicorn.loops.auto",
    "uvicorn.protocols.http.auto",
    "uvicorn.protocols.websockets.auto",
]


class ForkedChild:
    """A forked process, with the manners of one that asyncio started."""

    def __init__(self, process: ForkServerProcess, stdout: asyncio.StreamReader) -> None:
        assert process.pid is not None
        self.pid = process.pid
        self.stdout = stdout
        self._process = process
        self._ended = asyncio.Event()
        asyncio.get_running_loop().add_reader(process.sentinel, self._end)
        self._code: int | None = None

    def _end(self) -> None:
        asyncio.get_running_loop().remove_reader(self._process.sentinel)
        self._process.join()
        self._code = self._process.exitcode
        self._process.close()
        self._ended.set()

    @property
    def returncode(self) -> int | None:
        return self._code

    def send_signal(self, number: int) -> None:
        os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    async def wait(self) -> int:
        await self._ended.wait()
        assert self._code is not None
        return self._code


async def fork_ksana(arguments: Sequence[str], directory: Path, environment: Mapping[str, str]) -> ForkedChild:
    """Start `ksana` with these arguments in a group of its own."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(_PRELOADED)
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(
        target=_be_ksana, args=(list(arguments), str(directory), dict(environment), theirs), daemon=True
    )
    process.start()
    theirs.close()
    stdout = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(stdout), os.fdopen(os.dup(ours.fileno()), "rb")
    )
    ours.close()
    return ForkedChild(process, stdout)


def _be_ksana(arguments: list[str], directory: str, environment: dict[str, str], output: Connection) -> None:
    os.setsid()
    os.chdir(directory)
    os.environ.clear()
    os.environ.update(environment)
    for stream in (sys.stdout, sys.stderr):
        os.dup2(output.fileno(), stream.fileno())
        stream.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    output.close()
    # The one it was forked from knows neither.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    sys.argv = ["ksana", *arguments]
    # As `python -m` has it.
    sys.path.insert(0, directory)
    from ksana.cli import main

    main()
