"""Trying again in families that hang together: a step with children of its own is not begun anew but goes on with them.
Families in which something is tried again move one by one, the innermost first, and the last of them with all families
above it, which go on with it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from datetime import datetime

from ksana.domain.errors import InvalidState
from ksana.domain.moves import Move
from ksana.domain.plans import Plan, read_plan, shape_of_plan
from ksana.domain.ports import Clock, Store
from ksana.domain.runs import Run
from ksana.domain.steering import UNSUCCESSFUL, Family, Steer, go_on, retry_failed, retry_step

_TRIES = 20

Steering = Callable[[int, Steer, datetime, Steer | None], Awaitable[int]]


class _MovedError(Exception):
    """The family has moved since it was looked at."""


class TryAgain:
    """Retries steps and whole families."""

    def __init__(self, store: Store, clock: Clock, steer: Steering) -> None:
        self._store = store
        self._clock = clock
        self._steer = steer

    async def step(self, run: Run, plan: Plan, place: int, reason: str, artifact: bytes | None) -> None:
        """Try one step of a family again."""
        shape = shape_of_plan(plan)

        async def attempt() -> None:
            children = await self._store.children(run.id)
            if not children:
                raise InvalidState(f"the chain has not begun; no node of run {run.id} can be retried")
            if children[place].state in UNSUCCESSFUL and await self._store.children(children[place].id):
                await self.all_failed(children[place])
                return
            now = self._clock.now()

            def decide(family: Family) -> list[Move]:
                _expect([family.children[place]], children[place : place + 1])
                return retry_step(family, shape, place, now, reason=reason, artifact=artifact)

            await self._steer(run.id, decide, now, following(now))

        await _until_it_stands_still(run, attempt)

    async def all_failed(self, run: Run) -> None:
        """Try all steps of a family again that ended without success."""
        await self._children_of(run, follows=True)

    async def _children_of(self, run: Run, *, follows: bool = False) -> None:
        shape = shape_of_plan(read_plan(run.input))

        async def attempt() -> None:
            leaves = []
            for child in await self._store.children(run.id):
                if child.state in UNSUCCESSFUL:
                    if await self._store.children(child.id):
                        await self._children_of(child)
                    else:
                        leaves.append(child)
            now = self._clock.now()

            def decide(family: Family) -> list[Move]:
                _expect(family.children, leaves)
                return retry_failed(family, shape, now)

            # The families above wait until all of this one is tried again.
            await self._steer(run.id, decide, now, following(now) if follows else None)

        await _until_it_stands_still(run, attempt)


def following(now: datetime) -> Steer:
    """Families go on with a step that has risen because somebody stepped in below it."""
    return lambda family: go_on(family, shape_of_plan(read_plan(family.parent.input)), now)


def _expect(tried: Iterable[Run], seen: Iterable[Run]) -> None:
    """What is tried again must be what was looked at: one that has branched meanwhile must not begin anew."""
    epochs = {run.id: run.epoch for run in seen}
    for run in tried:
        if run.state in UNSUCCESSFUL and epochs.get(run.id) != run.epoch:
            raise _MovedError


async def _until_it_stands_still(run: Run, attempt: Callable[[], Awaitable[None]]) -> None:
    for _ in range(_TRIES):
        try:
            return await attempt()
        except _MovedError:
            continue
    raise InvalidState(f"run {run.id} moves faster than it can be changed; try again")
