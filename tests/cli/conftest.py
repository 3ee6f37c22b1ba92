"""The command in this process, in an empty directory and without anybody's settings."""

import logging
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
import pytest_asyncio

from ksana.cli import main
from tests.cli.nodes import BARE_NAMES, serving


class Said(NamedTuple):
    """How a command ended and what it printed."""

    code: int
    out: str
    err: str


Ksana = Callable[..., Said]


@pytest.fixture
def ksana(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Ksana]:
    """Run the `ksana` script with these arguments."""
    monkeypatch.chdir(tmp_path)
    for name in BARE_NAMES:
        monkeypatch.delenv(name, raising=False)
    root, ours = logging.getLogger(), logging.getLogger("ksana")
    handlers, level, our_level = root.handlers[:], root.level, ours.level

    def run(*arguments: str) -> Said:
        monkeypatch.setattr("sys.argv", ["ksana", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        code = ended.value.code
        return Said(code if isinstance(code, int) else 0, *capsys.readouterr())

    yield run
    root.handlers[:] = handlers
    root.setLevel(level)
    ours.setLevel(our_level)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared_url(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[str]:
    """One server for the tests of a module, which keep to jobs and queues of their own."""
    async with serving(tmp_path_factory.mktemp("server")) as node:
        yield node.url


@pytest.fixture
def asked(ksana: Ksana, shared_url: str, monkeypatch: pytest.MonkeyPatch) -> Ksana:
    """The same command, with a server to ask."""
    monkeypatch.setenv("KSANA_URL", shared_url)
    monkeypatch.delenv("KSANA_KEY", raising=False)
    return ksana
