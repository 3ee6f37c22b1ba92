"""One process a directory, any number of stores in it."""

import asyncio
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ksana.domain.errors import StoreUnavailable
from ksana.stores.open import open_store
from tests.stores.builders import a_job, get_job
from tests.stores.json.files import Place

HOLD = """
import asyncio, sys
from ksana.stores.open import open_store

async def hold():
    await open_store("json:" + sys.argv[1]).open()
    print("held", flush=True)
    sys.stdin.read()

asyncio.run(hold())
"""


@contextmanager
def another_process(directory: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that holds the directory until the block ends."""
    command = [sys.executable, "-c", HOLD, str(directory)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


async def test_another_process_is_told_who_has_the_directory_and_what_to_do(place: Place) -> None:
    place.path.mkdir()
    with another_process(place.path) as process, pytest.raises(StoreUnavailable) as refusal:
        await place.store().open()
    message = str(refusal.value)
    assert str(place.path) in message
    assert f"pid {process.pid}" in message
    assert "stop that one first" in message
    assert "--store json:DIR" in message


async def test_a_directory_whose_holder_was_killed_is_free(place: Place) -> None:
    place.path.mkdir()
    with another_process(place.path):
        pass
    store = place.store()
    await store.open()
    await store.ping()
    await store.close()


async def test_stores_of_one_process_share_one_state_until_the_last_is_closed(place: Place) -> None:
    first, second = place.store(), open_store(f"json://{place.path}")
    await first.open()
    await second.open()
    await first.add_jobs([a_job(1)])
    assert await get_job(second, 1) == a_job(1)
    await first.close()
    await second.add_jobs([a_job(2)])
    await second.close()
    with another_process(place.path):
        pass


async def test_another_event_loop_is_refused_while_one_uses_the_directory(place: Place) -> None:
    store = place.store()
    await store.open()
    with pytest.raises(StoreUnavailable, match="another event loop"):
        await asyncio.to_thread(lambda: asyncio.run(place.store().open()))
    await store.close()


def test_a_loop_that_ended_without_closing_leaves_the_directory_to_the_next(place: Place) -> None:
    async def use(number: int, closes: bool) -> None:
        store = place.store()
        await store.open()
        await store.add_jobs([a_job(number)])
        if closes:
            await store.close()

    asyncio.run(use(1, closes=False))
    asyncio.run(use(2, closes=True))
    assert [entry["id"] for entry in place.read()["other_jobs"]] == [1, 2]


@pytest.mark.parametrize("missing", ["fcntl", "msvcrt"])
def test_nothing_of_one_system_is_needed_to_import_the_store(missing: str) -> None:
    """K-90"""
    code = f"import sys; sys.modules[{missing!r}] = None; import ksana.stores.json.store"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_where_there_is_no_fcntl_the_other_lock_is_taken(place: Place) -> None:
    """K-90: the same calls as on Windows, with a stand-in for its module."""
    code = textwrap.dedent(
        """
        import sys, types
        from pathlib import Path
        from ksana.stores.json.lock import DirectoryLock

        calls = []
        sys.modules["fcntl"] = None
        locking = lambda handle, mode, count: calls.append((mode, count))
        sys.modules["msvcrt"] = types.SimpleNamespace(LK_NBLCK=2, locking=locking)
        lock = DirectoryLock(Path(sys.argv[1]))
        lock.release()
        assert calls == [(2, 1)]
        """
    )
    place.path.mkdir()
    subprocess.run([sys.executable, "-c", code, str(place.path)], check=True)


async def test_a_directory_that_cannot_be_made_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreUnavailable, match="file/data"):
        await open_store(f"json:{tmp_path}/file/data").open()
