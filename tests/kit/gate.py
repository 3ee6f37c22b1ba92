"""The way from one node to the store, which a test can close: before the store has done its step, or after it has."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ksana.domain.claims import Fired, Turn
from ksana.domain.errors import StoreUnavailable
from ksana.domain.ports import Store

WRITES = (
    "fire_due",
    "fire_foreseen",
    "turn",
    "add_run",
    "add_jobs",
    "change_jobs",
    "beat",
    "reserve_ids",
    "join",
    "prune",
    "roll_up",
    "admit_waiting",
    "hear",
    "steer",
    "keep_checkpoint",
    "add_attempts",
    "lease_alerts",
    "settle_alerts",
    "give_up_alerts",
)


_DEADLINE = 30.0


class Outage:
    """Which verbs get no answer, how often, and whether the store has done the step nevertheless."""

    def __init__(self, verbs: tuple[str, ...] | None, after_commit: bool, times: int | None) -> None:
        self._verbs = verbs
        self.after_commit = after_commit
        self._left = times
        self.hits = 0

    def strikes(self, verb: str) -> bool:
        if self._left == 0 or (self._verbs is not None and verb not in self._verbs):
            return False
        if self._left is not None:
            self._left -= 1
        self.hits += 1
        return True


class Gate:
    """A Store that passes every verb on to the real one, as long as the way is open."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.outages: list[Outage] = []
        self.before: dict[str, Callable[[], Any]] = {}
        self.changes = 0
        self.calls = 0
        self.under_way = 0
        self._answered = asyncio.Event()

    @property
    def parallelism(self) -> int:
        return self._store.parallelism

    @contextmanager
    def away(self, *verbs: str, after_commit: bool = False, times: int | None = None) -> Iterator[Outage]:
        outage = Outage(verbs or None, after_commit, times)
        self.outages.append(outage)
        try:
            yield outage
        finally:
            self.outages.remove(outage)

    async def answered(self) -> None:
        """Wait until the store has answered something."""
        self._answered.clear()
        async with asyncio.timeout(_DEADLINE):
            await self._answered.wait()

    def close(self) -> None:
        """Nothing passes any more."""
        self.outages.append(Outage(None, False, None))

    def __getattr__(self, verb: str) -> Any:
        real = getattr(self._store, verb)

        async def call(*args: Any, **kwargs: Any) -> Any:
            self.calls += 1
            if (hook := self.before.pop(verb, None)) is not None:
                await hook()
            outage = next((outage for outage in self.outages if outage.strikes(verb)), None)
            if outage is not None and not (outage.after_commit and verb in WRITES):
                raise StoreUnavailable(f"no answer to {verb}")
            self.under_way += 1
            try:
                result = await real(*args, **kwargs)
            finally:
                self.under_way -= 1
                self._answered.set()
            self.changes += _weight(verb, args, result)
            if outage is not None:
                raise StoreUnavailable(f"the answer to {verb} got lost")
            return result

        return call


def _weight(verb: str, args: tuple[Any, ...], result: Any) -> int:
    """How much a step has changed: a world is at rest when nothing changes any more."""
    if isinstance(result, Turn):
        return len(args[0]) + len(result.claimed)
    if isinstance(result, Fired):
        return result.looked_at
    if verb in ("lease_alerts", "steer"):
        return len(result)
    if verb == "admit_waiting":
        return int(result)
    return int(verb == "beat" and bool(result.taken))
