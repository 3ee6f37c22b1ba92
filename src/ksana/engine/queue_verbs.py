"""What workers of any kind do with the queue: enqueue, pull, acknowledge, fail, ask for more time, give back."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta

from ksana.domain.changes import Overtaken, Settlement
from ksana.domain.errors import AlreadyExists, InvalidState, KsanaError, NotFound, StoreUnavailable, VerifyCapReached
from ksana.domain.handing_out import Pulled
from ksana.domain.idempotency import IdempotencyRecord
from ksana.domain.items import (
    KIND,
    SCOPE,
    Enqueued,
    NewItem,
    Pull,
    PullOrder,
    Report,
    extended,
    held_back,
    is_about_object,
    lease_token,
    new_item,
    redriven,
    refuse_stale,
    refused,
    stored_key,
    stored_queue,
)
from ksana.domain.moves import Move
from ksana.domain.objects import VERIFYING, UnknownType, action_of, why_not_verified
from ksana.domain.ports import Clock, Observer, Store
from ksana.domain.runs import Run
from ksana.domain.states import Reason, State
from ksana.engine.alerts import Alarm
from ksana.engine.auditing import Auditor
from ksana.engine.draws import IdPool
from ksana.engine.handed_out import HandedOut
from ksana.engine.loops import rest
from ksana.engine.queue_judges import Judge, acking, failing, releasing
from ksana.engine.recording import Recorder
from ksana.engine.writing_back import WriteBack, Writing

_TRIES = 20
# How long what another node enqueued may go unnoticed by somebody who waits here.
_LOOK_AGAIN = timedelta(seconds=1)
# What is due and was not handed out may only be locked by somebody who looks at it; or nobody here wants its type.
_LOOK_SOON = timedelta(milliseconds=20)

PutBack = Callable[[int, Move, datetime], Awaitable[bool]]
"""Puts a step of a run back with its chain; answers whether the move counted."""

HungUp = Callable[[], Awaitable[object]]
"""Returns once the worker that waits for items is gone."""


def _is_written(move: Move, writes: Mapping[int, WriteBack]) -> bool:
    run = move.run
    return run.id in writes and run.state is State.SUCCESS and is_about_object(run)


def _goes_on_with(move: Move) -> int | None:
    """The chain that ended with an item which is put back, or waits for others: without this it would not hear how it
    goes on."""
    return move.run.parent_id if move.run.reason is Reason.OPERATOR else None


def _write_back(report: Report) -> WriteBack:
    return WriteBack(next_action_at=report.next_action_at, evidence=report.audit_event_id)


def _or_raise(results: Sequence[Run | KsanaError]) -> Run:
    [result] = results
    if isinstance(result, KsanaError):
        raise result
    return result


def _forgotten(run_id: int) -> AlreadyExists:
    return AlreadyExists(f"the key was used by item {run_id}, which ended long ago and is forgotten; take another")


class QueueVerbs:
    """Enqueue, pull, acknowledge, fail, extend, release, redrive."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        ids: IdPool,
        observers: Sequence[Observer],
        alarm: Alarm,
        auditor: Auditor,
        recorder: Recorder,
        put_back: PutBack,
    ) -> None:
        self._store = store
        self._clock = clock
        self._ids = ids
        self._observers = observers
        self._alarm = alarm
        self._auditor = auditor
        self._recorder = recorder
        self._handed_out = HandedOut()
        self._put_back = put_back
        self._news: dict[str, set[asyncio.Event]] = {}
        self._is_closed = False

    async def enqueue(self, new: Sequence[NewItem]) -> list[tuple[Run | KsanaError, bool]]:
        """Add items, all in one step. Answers for each the run that stands for it, and whether it is new. In place of
        one that stood for it and is forgotten by now there is AlreadyExists, in place of one that would verify what
        cannot be known once too often VerifyCapReached."""
        capped = await self._capped(new)
        await self._ids.ensure(len(new))
        now = self._clock.now()
        made = {n: self._made(one, now) for n, one in enumerate(new) if n not in capped}
        ids = await self._store.enqueue(list(made.values()))
        runs = {one.run.id: one.run for one in made.values()}
        if earlier := [id for id in ids if id not in runs]:
            runs |= {run.id: run for run in await self._store.get_runs(earlier)}
        self.tell({one.run.queue for one in made.values()})
        answers: dict[int, tuple[Run | KsanaError, bool]] = {n: (error, False) for n, error in capped.items()}
        for (n, one), id in zip(made.items(), ids, strict=True):
            answers[n] = (runs.get(id) or _forgotten(id), id == one.run.id)
        return [answers[n] for n in range(len(new))]

    async def _capped(self, new: Sequence[NewItem]) -> dict[int, VerifyCapReached]:
        """Which of them must not be enqueued. A key that was used stands for what it stood for, cap or not."""
        subjects = {one.subject for one in new if one.subject is not None and action_of(one.type) in VERIFYING}
        objects = await self._store.get_objects(subjects) if subjects else {}
        unknowable = {subject for subject, one in objects.items() if one.unknown is UnknownType.ONTIC}
        return {
            n: VerifyCapReached(error)
            for n, one in enumerate(new)
            if one.subject in unknowable
            and (error := why_not_verified(objects[one.subject], action_of(one.type)))
            and not await self._is_known(one)
        }

    async def _is_known(self, new: NewItem) -> bool:
        if new.key is None:
            return False
        return await self._store.find_idempotency(SCOPE, stored_key(new.queue, new.key)) is not None

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
            subject=new.subject,
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
                pulled = await self._store.pull(asked)
                runs = pulled.runs
                if pulled.refused or pulled.blocked:
                    await self._say(pulled, at)
                if gone is not None and gone.done():
                    return await self._give_back(runs)
                if runs or at >= until or self._is_closed:
                    self._handed_out.keep(runs)
                    return runs
                due_at = await self._store.next_due_at([name])
                wake_at = min(until, at + _LOOK_AGAIN)
                if due_at is not None:
                    wake_at = min(wake_at, due_at if due_at > at else at + soon)
                    soon = _LOOK_SOON if due_at > at else min(soon * 2, _LOOK_AGAIN)
                await rest(self._clock, news, wake_at - at)
        finally:
            if gone is not None:
                gone.cancel()
            self._news[name].discard(news)
            if not self._news[name]:
                del self._news[name]

    async def _say(self, pulled: Pulled, now: datetime) -> None:
        """Say of items why they were not handed out. Whoever overtakes this will be the one to say it."""
        moves = [refused(refusal.run, now, refusal.error) for refusal in pulled.refused]
        moves += [move for run in pulled.blocked if (move := held_back(run, now)) is not None]
        if not moves:
            return
        alerts = self._alarm.of([(move, None) for move in moves], now)
        try:
            entries = await self._auditor.decisions(moves, now)
            settlement = Settlement(
                moves=tuple(moves), alerts=tuple(alerts), hooks=tuple(self._alarm.hooks), entries=tuple(entries)
            )
            followed = await self._store.settle(settlement)
        except (Overtaken, StoreUnavailable):
            # What was handed out beside them has to reach its worker; the next pull finds these as they are.
            return
        for observer in self._observers:
            observer.on_moved([*[(move, None) for move in moves], *followed], now)

    async def _give_back(self, runs: Sequence[Run]) -> list[Run]:
        if runs:
            await self.move_many({run.id: releasing(lease_token(run)) for run in runs})
        return []

    def close(self) -> None:
        """Nobody is kept waiting any more."""
        self._is_closed = True
        self.tell_all()

    def tell_all(self) -> None:
        """There may be something new anywhere."""
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
        """The worker has done it. One that was acknowledged already is answered as it is. What it tells of the object
        is written back."""
        writes = {} if report is None or not report.is_about_object else {run_id: _write_back(report)}
        return _or_raise(await self.move_many({run_id: acking(token, artifact, report)}, writes))

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
        return _or_raise(await self.move_many({run_id: judge}))

    async def move_many(
        self, judges: Mapping[int, Judge], writes: Mapping[int, WriteBack] | None = None
    ) -> list[Run | KsanaError]:
        """Move items as they stand, all in one step; each is answered on its own. One that moves meanwhile is looked at
        again. `writes` says what is to be written back to the objects of those that are done."""
        writes = writes or {}
        results = await self._moved_at_sight(judges)
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
            told = [move for move in moves if _is_written(move, writes)] if writes else []
            plain = [move for move in moves if not _is_written(move, writes)] if told else moves
            if plain:
                results |= await self._stored(plain, now)
            if told:
                results |= await self._written(told, writes, now)
        busy = InvalidState("the item moves faster than it can be changed; try again")
        return [results.get(run_id, busy) for run_id in judges]

    async def _moved_at_sight(self, judges: Mapping[int, Judge]) -> dict[int, Run | KsanaError]:
        """Move items that were all handed out here as they were then, if nothing is to be refused; those that moved
        meanwhile stay as they are."""
        known = self._handed_out.take(judges)
        if len(known) < len(judges):
            return {}
        now = self._clock.now()
        try:
            moves = [judge(known[run_id], now) for run_id, judge in judges.items()]
        except KsanaError:
            # What stands in the store may tell otherwise.
            return {}
        sure = [move for move in moves if move is not None]
        return await self._stored(sure, now) if len(sure) == len(judges) > 0 else {}

    async def _written(
        self, moves: list[Move], writes: Mapping[int, WriteBack], now: datetime
    ) -> dict[int, Run | KsanaError]:
        """Store moves together with what they mean for objects; nothing, if somebody was faster."""
        objects = await self._store.get_objects({move.run.subject for move in moves if move.run.subject is not None})
        writing = Writing(objects, now)
        for move in moves:
            writing.add(move, writes[move.run.id])
        await self._ids.ensure(len(writing.follows))
        settlement = Settlement(
            moves=tuple(writing.moves),
            hooks=tuple(self._alarm.hooks),
            objects=tuple(writing.objects()),
            items=tuple(self._made(one, now) for one in writing.follows),
            entries=tuple(await self._auditor.written(writing.changes, now)),
        )
        try:
            followed = await self._store.settle(settlement)
        except Overtaken:
            return {}
        for observer in self._observers:
            observer.on_moved([*[(move, None) for move in writing.moves], *followed], now)
        self.tell({one.run.queue for one in settlement.items})
        return {**writing.errors, **{move.run.id: move.run for move in writing.moves}}

    async def _stored(self, moves: list[Move], now: datetime) -> dict[int, Run | KsanaError]:
        steps = {move.run.id: parent_id for move in moves if (parent_id := _goes_on_with(move)) is not None}
        plain = [move for move in moves if move.run.id not in steps] if steps else moves
        kept = await self._turned(plain, now) if plain else []
        for move in moves if steps else ():
            if move.run.id in steps and await self._put_back(steps[move.run.id], move, now):
                kept.append(move)
        self.tell({move.run.queue for move in kept if not move.run.state.is_final})
        put_back = [move.run for move in kept if move.run.reason is Reason.OPERATOR]
        await self._recorder.runs("run.redrive", [(None, run) for run in put_back])
        return {move.run.id: move.run for move in kept}

    async def _turned(self, moves: list[Move], now: datetime) -> list[Move]:
        """Those of the moves that counted."""
        pairs = [(move, None) for move in moves]
        turn = await self._store.turn(moves, None, self._alarm.of(pairs, now), self._alarm.hooks)
        kept = [move for move in moves if move.run.id not in turn.lost]
        self._handed_out.keep(move.run for move in kept)
        for observer in self._observers:
            observer.on_moved([*[(move, None) for move in kept], *turn.followed], now)
        return kept
