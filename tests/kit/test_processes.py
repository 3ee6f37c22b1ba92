import signal
import sys
from pathlib import Path

import pytest

from tests.kit.processes import program

READY = "import sys; print('listening on http://127.0.0.1:7100'); sys.stdin.read(); import signal; signal.pause()"


async def test_a_program_is_ready_when_it_says_so_and_can_be_killed(tmp_path: Path) -> None:
    async with program(sys.executable, "-c", READY, directory=tmp_path) as process:
        assert await process.url() == "http://127.0.0.1:7100"
        await process.kill()
        assert await process.ended() == -signal.SIGKILL


async def test_a_frozen_program_ends_only_after_it_is_thawed(tmp_path: Path) -> None:
    async with program(sys.executable, "-c", READY, directory=tmp_path) as process:
        await process.line("listening")
        process.freeze()
        process.thaw()
        assert await process.stop() == -signal.SIGTERM


async def test_a_frozen_program_does_not_outlive_its_block(tmp_path: Path) -> None:
    async with program(sys.executable, "-c", READY, directory=tmp_path) as process:
        await process.line("listening")
        process.freeze()
    assert await process.ended() == -signal.SIGKILL


async def test_a_program_that_ends_early_fails_the_wait_with_its_words(tmp_path: Path) -> None:
    async with program(sys.executable, "-c", "raise SystemExit('no disk')", directory=tmp_path) as process:
        with pytest.raises(AssertionError, match="no disk"):
            await process.url()
        assert await process.ended() == 1
