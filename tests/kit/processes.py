"""Real processes for the tests that kill them: watched by their output, frozen, killed, always cleaned up."""

import asyncio
import os
import re
import signal
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from pathlib import Path

from tests.kit.forked import ForkedChild, fork_ksana

DEADLINE = 30.0

_URL = re.compile(r"https?://[\w.\-\[\]:]+:\d+")


class Process:
    """A running program; what it prints goes to a file, and a test can wait for a line of it."""

    def __init__(self, child: asyncio.subprocess.Process | ForkedChild, log: Path) -> None:
        self.log = log
        self._child = child
        self._printed = asyncio.Event()
        self._has_ended = False
        self._reading = asyncio.get_running_loop().create_task(self._read())

    @property
    def pid(self) -> int:
        return self._child.pid

    @property
    def output(self) -> str:
        return self.log.read_text(errors="replace")

    async def line(self, pattern: str, timeout: float = DEADLINE) -> re.Match[str]:
        """Wait for output that matches; fail at the deadline, or at once when the program ends without it."""
        wanted = re.compile(pattern)
        try:
            async with asyncio.timeout(timeout):
                while (found := wanted.search(self.output)) is None:
                    if self._has_ended:
                        raise AssertionError(f"it ended without printing {pattern!r}; it said:\n{self.output}")
                    self._printed.clear()
                    await self._printed.wait()
        except TimeoutError:
            raise AssertionError(f"no {pattern!r} within {timeout:g} s; it said:\n{self.output}") from None
        return found

    async def url(self, timeout: float = DEADLINE) -> str:
        """Wait for the address the program says it listens on."""
        return (await self.line(_URL.pattern, timeout)).group()

    def freeze(self) -> None:
        """Stop it in its tracks, as a long pause of its machine would."""
        self._child.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self._child.send_signal(signal.SIGCONT)

    async def kill(self) -> None:
        """End it as a power cut would, and whatever it started."""
        if self._child.returncode is None:
            # It may have ended a moment ago, and nobody has told us yet.
            with suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)
        await self.ended()

    async def stop(self, timeout: float = DEADLINE) -> int:
        """Ask it to end, and give its exit code."""
        if self._child.returncode is None:
            self._child.terminate()
        return await self.ended(timeout)

    async def ended(self, timeout: float = DEADLINE) -> int:
        """Wait for the end, and give the exit code; a negative one is the signal that ended it."""
        try:
            async with asyncio.timeout(timeout):
                code = await self._child.wait()
                await asyncio.shield(self._reading)
        except TimeoutError:
            raise AssertionError(f"still running after {timeout:g} s; it said:\n{self.output}") from None
        return code

    async def _read(self) -> None:
        assert self._child.stdout is not None
        with self.log.open("wb", buffering=0) as log:
            while piece := await self._child.stdout.read(65_536):
                log.write(piece)
                self._printed.set()
        self._has_ended = True
        self._printed.set()


@asynccontextmanager
async def program(
    *command: str | Path, directory: Path, environment: Mapping[str, str] | None = None
) -> AsyncIterator[Process]:
    """Start a program in this directory, where its output is kept too; it never outlives the block."""
    child = await asyncio.create_subprocess_exec(
        *map(str, command),
        cwd=directory,
        env={**os.environ, "PYTHONUNBUFFERED": "1", **(environment or {})},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        # A group of its own, so that killing it takes its children along.
        start_new_session=True,
    )
    async with _watched(child, directory) as process:
        yield process


@asynccontextmanager
async def ksana(
    *arguments: str, directory: Path, environment: Mapping[str, str] | None = None
) -> AsyncIterator[Process]:
    """Start the `ksana` command in the same way, only quicker: see `forked`."""
    child = await fork_ksana(arguments, directory, {**os.environ, **(environment or {})})
    async with _watched(child, directory) as process:
        yield process


def spawned_ksana(
    *arguments: str, directory: Path, environment: Mapping[str, str] | None = None
) -> AbstractAsyncContextManager[Process]:
    """Start `python -m ksana` from nothing."""
    return program(sys.executable, "-m", "ksana", *arguments, directory=directory, environment=environment)


@asynccontextmanager
async def _watched(child: asyncio.subprocess.Process | ForkedChild, directory: Path) -> AsyncIterator[Process]:
    process = Process(child, _new_log(directory))
    try:
        yield process
    finally:
        await process.kill()


def _new_log(directory: Path) -> Path:
    log = directory / f"output-{sum(1 for _ in directory.glob('output-*.log')) + 1}.log"
    log.touch()
    return log
