"""What workers of any kind do with the queue: enqueue, pull, acknowledge, fail, ask for more time, give back."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta

import msgspec

from ksana.domain.errors import AlreadyExists, InvalidState, KsanaError, NotFound
from ksana.domain.idempotency import IdempotencyRecord
from ksana.domain.items import (
    KIND,
    QUEUE,
    SCOPE,
    Enqueued,
    Item,
    Pull,
    PullOrder,
    Report,
    extended,
    lease_token,
    new_item,
    redriven,
    refuse_stale,
    stored_key,
    stored_queue,
)
from ksana.domain.moves import Move
from ksana.domain.policies import Priority
from ksana.domain.ports import Clock, Observer, Store
from ksana.domain.runs import Run
from ksana.engine.alerts import Alarm
from ksana.engine.draws import IdPool
from ksana.engine.loops import rest
from ksana.engine.queue_judges import Judge, acking, failing, releasing

_TRIES = 20
# How long what another node enqueued may go unnoticed by somebody who waits here.
_LOOK_AGAIN = timedelta(seconds=1)
# What is due and was not handed out may only be locked by somebody who looks at it; or nobody here wants its type.
_LOOK_SOON = timedelta(milliseconds=20)

HungUp = Callable[[], Awaitable[object]]
"""Returns once the worker that waits for items is gone."""


class NewItem(msgspec.Struct, frozen=True, kw_only=True):
    """An item somebody wants enqueued. One with a `key` that was ever used in its queue stands for the one that used
    it."""

    queue: str
    item: Item
    due_at: datetime | None = None
    priority: Priority = Priority.NORMAL
    surface: str = QUEUE
    type: str | None = None
    key: str | None = None


def _forgotten(run_id: int) -> AlreadyExists:
    return AlreadyExists(f"the key was used by item {run_id}, which ended long ago and is forgotten; take another")


class QueueVerbs:
    """Enqueue, pull, acknowledge, fail, extend, release, redrive."""

    def __init__(self, store: Store, clock: Clock, ids: IdPool, observers: Sequence[Observer], alarm: Alarm) -> None:
        self._store = store
        self._clock = clock
        self._ids = ids
        self._observers = observers
        self._alarm = alarm
        self._news: dict[str, set[asyncio.Event]] = {}
        self._is_closed = False

    async def enqueue(self, new: Sequence[NewItem]) -> list[tuple[Run | AlreadyExists, bool]]:
        """Add items, all in one step. Answers for each the run that stands for it, and whether it is new; AlreadyExists
        in place of one that stood for it and is forgotten by now."""
        await self._ids.ensure(len(new))
        now = self._clock.now()
        made = [self._made(one, now) for one in new]
        ids = await self._store.enqueue(made)
        runs = {one.run.id: one.run for one in made}
        if earlier := [id for id in ids if id not in runs]:
            runs |= {run.id: run for run in await self._store.get_runs(earlier)}
        self.tell({one.run.queue for one in made})
        return [(runs.get(id) or _forgotten(id), id == one.run.id) for id, one in zip(ids, made, strict=True)]

    def _made(self, new: NewItem, now: datetime) -> Enqueued:
        run = new_item(
            self._ids.take(),
            new.queue,
            new.item,
            now,
            due_at=new.due_at or now,
            priority=new.priority,
            surface=new.surface,
            type=new.type,
        )
        if new.key is None:
            return Enqueued(run)
        # What the key stands for is the run; nobody asks whether a second request was alike.
        key = stored_key(new.queue, new.key)
        return Enqueued(run, IdempotencyRecord(SCOPE, key, b"", 0, str(run.id).encode(), now))

    async def pull(
        self,
        queue: str,
        holder: str,
        *,
        limit: int,
        lease: timedelta,
        now: datetime | None = None,
        wait: timedelta = timedelta(0),
        types: tuple[str, ...] = (),
        order: PullOrder = PullOrder.DUE,
        hung_up: HungUp | None = None,
    ) -> list[Run]:
        """Hand due items out to a worker; if there are none, wait for some up to so long. `now` is the worker's clock,
        if it has one of its own. What was meant for a worker that has hung up meanwhile is given back."""
        name = stored_queue(queue)
        until = self._clock.now() + wait
        news, soon = asyncio.Event(), _LOOK_SOON
        self._news.setdefault(name, set()).add(news)
        gone = None if hung_up is None else asyncio.ensure_future(hung_up())
        if gone is not None:
            gone.add_done_callback(lambda _: news.set())
        try:
            while True:
                news.clear()
                at = self._clock.now()
                asked = Pull(
                    queue=name,
                    now=now or at,
                    limit=limit,
                    holder=holder,
                    # The lease runs by the clock of those who judge it.
                    until=at + lease,
                    types=types,
                    order=order,
                    at=at,
                )
                runs = await self._store.pull(asked)
                if gone is not None and gone.done():
                    return await self._give_back(runs)
                if runs or at >= until or self._is_closed:
                    return runs
                due_at = await self._store.next_due_at([name])
                wake_at = min(until, at + _LOOK_AGAIN)
                if due_at is not None:
                    wake_at = min(wake_at, due_at if due_at > at else at + soon)
                    soon = _LOOK_SOON if due_at > at else soon * 2
                await rest(self._clock, news, wake_at - at)
        finally:
            if gone is not None:
                gone.cancel()
            self._news[name].discard(news)
            if not self._news[name]:
                del self._news[name]

    async def _give_back(self, runs: Sequence[Run]) -> list[Run]:
        if runs:
            await self.move_many({run.id: releasing(lease_token(run)) for run in runs})
        return []

    def close(self) -> None:
        """Nobody is kept waiting any more."""
        self._is_closed = True
        self.tell(self._news)

    def tell(self, queues: Iterable[str]) -> None:
        """There may be something new in these queues."""
        for queue in queues:
            for news in self._news.get(queue, ()):
                news.set()

    async def get(self, run_id: int) -> Run:
        """An item, by its number."""
        found = await self._store.get_runs([run_id])
        if not found or found[0].kind != KIND:
            raise NotFound(f"there is no item {run_id}")
        return found[0]

    async def ack(
        self, run_id: int, token: str | None = None, artifact: bytes | None = None, report: Report | None = None
    ) -> Run:
        """The worker has done it. One that was acknowledged already is answered as it is."""
        return await self._move(run_id, acking(token, artifact, report))

    async def fail(
        self,
        run_id: int,
        error: str,
        *,
        token: str | None = None,
        delay: timedelta = timedelta(0),
        is_final: bool = False,
        report: Report | None = None,
    ) -> Run:
        """The worker could not do it."""
        return await self._move(run_id, failing(error, token, delay=delay, is_final=is_final, report=report))

    async def extend(
        self, run_id: int, lease: timedelta, token: str | None = None, report: Report | None = None
    ) -> Run:
        """The worker needs that much longer from now on."""

        def judged(run: Run, now: datetime) -> Move:
            refuse_stale(run, token)
            return extended(run, now + lease, report)

        return await self._move(run_id, judged)

    async def release(self, run_id: int, token: str | None = None) -> Run:
        """The worker gives it back untouched; it counts as no failure."""
        return await self._move(run_id, releasing(token))

    async def redrive(self, run_id: int) -> Run:
        """Put a dead letter back with all its attempts before it."""
        return await self._move(run_id, redriven)

    async def _move(self, run_id: int, judge: Judge) -> Run:
        [result] = await self.move_many({run_id: judge})
        if isinstance(result, KsanaError):
            raise result
        return result

    async def move_many(self, judges: Mapping[int, Judge]) -> list[Run | KsanaError]:
        """Move items as they stand, all in one step; each is answered on its own. One that moves meanwhile is looked at
        again."""
        results: dict[int, Run | KsanaError] = {}
        for _ in range(_TRIES):
            todo = [run_id for run_id in judges if run_id not in results]
            if not todo:
                break
            found = {run.id: run for run in await self._store.get_runs(todo) if run.kind == KIND}
            now = self._clock.now()
            moves: list[Move] = []
            for run_id in todo:
                run = found.get(run_id)
                try:
                    if run is None:
                        raise NotFound(f"there is no item {run_id}")
                    move = judges[run_id](run, now)
                except KsanaError as error:
                    results[run_id] = error
                    continue
                if move is None:
                    results[run_id] = run
                else:
                    moves.append(move)
            if moves:
                results |= await self._stored(moves, now)
        busy = InvalidState("the item moves faster than it can be changed; try again")
        return [results.get(run_id, busy) for run_id in judges]

    async def _stored(self, moves: list[Move], now: datetime) -> dict[int, Run | KsanaError]:
        pairs = [(move, None) for move in moves]
        turn = await self._store.turn(moves, None, self._alarm.of(pairs, now), self._alarm.hooks)
        kept = [move for move in moves if move.run.id not in turn.lost]
        for observer in self._observers:
            observer.on_moved([*[(move, None) for move in kept], *turn.followed], now)
        self.tell({move.run.queue for move in kept if not move.run.state.is_final})
        return {move.run.id: move.run for move in kept}
