"""Moving and claiming runs. A move counts if (id, epoch) still matches, and by nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ksana.domain.alerts import Alert
from ksana.domain.callbacks import LEDGER_LENGTH, Heard
from ksana.domain.changes import Overtaken, Settlement
from ksana.domain.claims import Claim, Claimed, Turn
from ksana.domain.errors import AlreadyExists, InvalidState, NotFound
from ksana.domain.moves import Move
from ksana.domain.runs import Attempt
from ksana.domain.steering import Family, Steer, risen
from ksana.domain.times import to_micros
from ksana.stores.redis.attempt_values import attempt_to_parts
from ksana.stores.redis.catalog import Catalog
from ksana.stores.redis.ends import in_lots, lots_args
from ksana.stores.redis.families import Families, Follow, Told, alerts_for, ended_children, with_jobs
from ksana.stores.redis.governed_values import entries_args, objects_args
from ksana.stores.redis.link import Link
from ksana.stores.redis.moving import alerts_args, in_order, moves_args, stored_run, won
from ksana.stores.redis.pulling import items_args
from ksana.stores.redis.scripts import ADD_ATTEMPTS, FAMILY, HEAR, LOOK, SETTLE, TURN
from ksana.stores.redis.shelves import callback_to_value, progress_to_value
from ksana.stores.redis.values import fitting, runs_from_reply

_NO_CLAIM: tuple[Any, ...] = (0, 0, 0, 0)
_NO_LOTS: tuple[Any, ...] = (0,)


class Turns:
    """All that moves runs."""

    def __init__(self, link: Link, catalog: Catalog) -> None:
        self._link = link
        self._catalog = catalog
        self.families = Families()

    async def turn(
        self, moves: Sequence[Move], claim: Claim | None, alerts: Sequence[Alert], hooks: Sequence[str]
    ) -> Turn:
        tried = in_order(moves)
        if ended_children(move.run for move in tried):
            return await self._turn_families(tried, claim, alerts, hooks)
        lots, others = in_lots(tried)
        while True:
            with fitting():
                # No stamps, no need for all to count, nothing that follows.
                args = [0, 0, *lots_args(lots), *moves_args(others), 0, 0, *alerts_args(alerts), *_claim_args(claim)]
            reply = await self._link.run(TURN, *args)
            if reply[0] != b"touched":
                break
            # A run of a lot is not what it was taken for. Nothing was done yet, and now each is tried by itself.
            lots, others = {}, tried
        late, admitted, claimed, versions, _ = _done(reply)
        lost = frozenset[int]()
        if late:
            behind = set(late)
            counted = {move.run.id for index, move in enumerate(others) if index not in behind}
            counted.update(move.run.id for lot in lots.values() for move in lot)
            lost = frozenset(move.run.id for move in tried) - counted
        return Turn(lost, await self._claimed(claimed, versions), admitted)

    async def _turn_families(
        self, tried: list[Move], claim: Claim | None, alerts: Sequence[Alert], hooks: Sequence[str]
    ) -> Turn:
        """A turn that means something for families: which moves count, and what follows, is worked out first."""
        while True:
            counted = won(tried, await self._epochs(tried))
            lost = frozenset(move.run.id for move in tried) - {move.run.id for move in counted}
            follow = await self._follow(counted)
            with fitting():
                kept = [alert for alert in alerts if alert.run_id not in lost]
                left = alerts_for(follow.told, hooks)
                args = [*follow.stamps_args(), 1, *_NO_LOTS, *moves_args(counted), *follow.steps_args()]
                args += [len(kept) + left[0], *alerts_args(kept)[1:], *left[1:], *_claim_args(claim)]
            reply = await self._link.run(TURN, *args)
            if reply[0] == b"again":
                continue
            _, admitted, claimed, versions, stamps = _done(reply)
            follow.keep(stamps)
            return Turn(lost, await self._claimed(claimed, versions), admitted, follow.told)

    async def _epochs(self, moves: Iterable[Move]) -> dict[int, int]:
        ids = list(dict.fromkeys(move.run.id for move in moves))
        epochs, _ = await self._link.run(LOOK, len(ids), *ids, 0)
        return dict(zip(ids, epochs, strict=True))

    async def _follow(self, moves: Sequence[Move]) -> Follow:
        follow = Follow(self._link, self._catalog, self.families, moves)
        await follow.work_out(move.run for move in moves)
        return follow

    async def _claimed(self, reply: list[Any], versions: list[int]) -> list[Claimed]:
        if not reply:
            return []
        jobs = await self._catalog.jobs(zip(versions[::2], versions[1::2], strict=True))
        return [Claimed(run, jobs.get(run.job_id or 0)) for run in runs_from_reply(reply)]

    async def steer(self, parent_id: int, decide: Steer, hooks: Sequence[str], above: Steer | None) -> Told:
        while True:
            stamp, family = await self._family(parent_id, [])
            last = moves = self._decided(family, decide)
            if not moves:
                return []
            stamps = [(parent_id, stamp)]
            while above and (run := risen(family, last)) and run.parent_id is not None:
                stamp, family = await self._family(run.parent_id, last)
                last = self._decided(family, above)
                stamps.append((run.parent_id, stamp))
                moves = moves + last
            ordered = in_order(moves)
            follow = Follow(self._link, self._catalog, self.families, ordered)
            # What follows within the family was decided with the rest.
            await follow.work_out(move.run for move in last if move.run.id == family.parent.id)
            told = await with_jobs(self._catalog, moves) + follow.told
            with fitting():
                args = [*follow.stamps_args(*stamps), 1, *_NO_LOTS, *moves_args(ordered)]
                args += [*follow.steps_args(), *alerts_for(told, hooks), *_NO_CLAIM]
            answer = await self._link.run(TURN, *args)
            if answer[0] == b"again":
                continue
            follow.keep(_done(answer)[-1])
            return told

    async def _family(self, parent_id: int, moves: Sequence[Move]) -> tuple[bytes, Family]:
        """The stamp of a family, and the family as it stands once these moves are made."""
        stamp, reply = await self._link.run(FAMILY, parent_id)
        moved = {move.run.id: stored_run(move) for move in moves}
        runs = [moved.get(run.id, run) for run in runs_from_reply(reply)]
        if not runs or runs[0].id != parent_id:
            raise NotFound(f"there is no run {parent_id}")
        return stamp, Family(runs[0], runs[1:])

    def _decided(self, family: Family, decide: Steer) -> list[Move]:
        moves, runs = decide(family), [family.parent, *family.children]
        if len(won(in_order(moves), {run.id: run.epoch for run in runs})) < len(moves):
            raise InvalidState(f"run {family.parent.id} or its children are not where the decision took them to be")
        self.families.take(family.parent.id)
        return moves

    async def hear(self, heard: Heard) -> Told | None:
        record, progress = heard.record, heard.progress
        moves = [] if heard.move is None else [heard.move]
        while True:
            follow = await self._follow(moves)
            with fitting():
                left = alerts_for(follow.told, heard.hooks)
                args = [*follow.stamps_args(), *moves_args(moves), *follow.steps_args()]
                args += (
                    LEDGER_LENGTH if heard.needs_room else b"",
                    record.id,
                    record.run_id,
                    callback_to_value(record),
                )
                args += (b"" if progress is None else progress_to_value(progress),)
                args += [len(heard.alerts) + left[0], *alerts_args(heard.alerts)[1:], *left[1:]]
            reply = await self._link.run(HEAR, *args)
            if reply[0] == b"again":
                continue
            if reply[0] == b"late":
                return None
            follow.keep(reply[1])
            return follow.told

    async def settle(self, settlement: Settlement) -> Told:
        moves = in_order(settlement.moves)
        while True:
            follow = await self._follow(moves)
            with fitting():
                left = alerts_for(follow.told, settlement.hooks)
                args = [*follow.stamps_args(), *moves_args(moves), *objects_args(settlement.objects)]
                args += [*follow.steps_args(), len(settlement.alerts) + left[0]]
                args += [*alerts_args(settlement.alerts)[1:], *left[1:]]
                args += [*items_args(settlement.items), *entries_args(settlement.entries)]
            reply = await self._link.run(SETTLE, *args)
            if reply[0] == b"again":
                continue
            if reply[0] == b"late":
                raise Overtaken("a run or an object has moved")
            follow.keep(_done(reply)[0])
            return follow.told

    async def add_attempts(self, attempts: Sequence[Attempt]) -> None:
        if not attempts:
            return
        with fitting():
            args: list[Any] = [len(attempts)]
            for attempt in attempts:
                args += (attempt.run_id, *attempt_to_parts(attempt))
        await self._link.run(ADD_ATTEMPTS, *args)


def _claim_args(claim: Claim | None) -> Iterable[Any]:
    if claim is None or claim.limit <= 0:
        return _NO_CLAIM
    queues = dict.fromkeys(claim.queues)
    return to_micros(claim.now), claim.node_id, claim.limit, len(queues), *queues


def _done(reply: list[Any]) -> list[Any]:
    if reply[0] == b"taken":
        raise AlreadyExists(f"there is a run {reply[1].decode()} already")
    return reply[1:]
