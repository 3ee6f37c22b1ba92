"""What is asked of a Redis server, and what becomes of its refusals."""

import logging
from typing import Any

import pytest
import redis.asyncio
from redis.exceptions import BusyLoadingError, OutOfMemoryError, ReadOnlyError, ResponseError
from redis.exceptions import TimeoutError as NoAnswer

from ksana.domain.errors import InvalidArgument, StoreUnavailable
from ksana.domain.runs import Trigger
from ksana.domain.states import FINAL, Reason, State
from ksana.stores.redis.codes import REASONS, STATES, TRIGGERS
from ksana.stores.redis.store import RedisStore

GOOD = {"redis_version": "7.0.15", "maxmemory_policy": "noeviction", "aof_enabled": 1}


@pytest.fixture
def tells(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """A server that tells this of itself, and answers nothing else."""
    told: dict[str, Any] = dict(GOOD)
    settings = {"appendfsync": "always"}

    async def answer(self: Any, command: str, *args: Any) -> Any:
        if command == "CONFIG GET":
            return {name: told.get(name, settings.get(name)) for name in args}
        return told if command == "INFO" else b"1"

    monkeypatch.setattr(redis.asyncio.Redis, "execute_command", answer)
    return told


@pytest.mark.parametrize(
    ("said", "complaint"),
    [
        ({"maxmemory_policy": "allkeys-lru"}, r"allkeys-lru.*CONFIG SET maxmemory-policy noeviction"),
        ({"redis_version": "5.0.7"}, r"Redis 5\.0\.7 is too old"),
    ],
)
async def test_a_server_that_may_lose_things_is_refused(
    tells: dict[str, Any], said: dict[str, Any], complaint: str
) -> None:
    tells |= said
    with pytest.raises(StoreUnavailable, match=complaint):
        await RedisStore("redis://127.0.0.1:1").open()


@pytest.mark.parametrize(
    ("said", "warning"),
    [({}, None), ({"aof_enabled": 0}, "no append-only file"), ({"appendfsync": "everysec"}, "not always")],
)
async def test_a_server_that_writes_late_is_warned_of(
    tells: dict[str, Any], said: dict[str, Any], warning: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    tells |= said
    store = RedisStore("redis://127.0.0.1:1")
    with caplog.at_level(logging.WARNING):
        await store.open()
    await store.close()
    assert (warning or "") in caplog.text
    assert bool(caplog.text) is bool(warning)


@pytest.mark.parametrize(
    "error",
    [
        BusyLoadingError("Redis is loading the dataset in memory"),
        ReadOnlyError("You can't write against a read only replica."),
        OutOfMemoryError("command not allowed when used memory > 'maxmemory'."),
        ResponseError("MISCONF Redis is configured to save RDB snapshots, but it cannot"),
        ResponseError("OOM command not allowed when used memory > 'maxmemory'. script: 1, on @user_script:1."),
        ResponseError("BUSY Redis is busy running a script."),
        NoAnswer("Timeout reading from socket"),
        ConnectionResetError(104, "gone"),
    ],
)
async def test_a_server_that_cannot_serve_now_is_unavailable(
    tells: dict[str, Any], monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    store = RedisStore("redis://127.0.0.1:1")
    await store.open()

    async def refuse(*_: Any) -> Any:
        raise error

    monkeypatch.setattr(redis.asyncio.Redis, "execute_command", refuse)
    with pytest.raises(StoreUnavailable, match="Redis does not answer"):
        await store.turn([])
    monkeypatch.undo()
    await store.close()


async def test_a_fault_of_ours_is_not_taken_for_an_outage(
    tells: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    store = RedisStore("redis://127.0.0.1:1")
    await store.open()

    async def fail(*_: Any) -> Any:
        raise ResponseError("ERR user_script:7: attempt to index a nil value")

    monkeypatch.setattr(redis.asyncio.Redis, "execute_command", fail)
    with pytest.raises(ResponseError):
        await store.turn([])
    monkeypatch.undo()
    await store.close()


@pytest.mark.parametrize("query", ["prefix=", "prefix={x}", "prefix=a b", "wrong=1"])
async def test_an_address_that_says_something_strange_is_refused(query: str) -> None:
    with pytest.raises(InvalidArgument):
        await RedisStore(f"redis://127.0.0.1:1/0?{query}").open()


def test_every_word_has_a_letter_of_its_own_and_ends_are_small() -> None:
    for letters, words in ((STATES, State), (TRIGGERS, Trigger), (REASONS, [None, *Reason])):
        assert set(letters) == set(words)
        assert len(set(letters.values())) == len(letters)
    assert {state for state, letter in STATES.items() if letter.islower()} == FINAL
