"""Families: what the end of a child means for its siblings and its parent, worked out in the same transaction.

Whoever moves a family on holds the lock of its row in `ksana_chains`, and leaves a new stamp there. A chain kept in
memory is good as long as the stamp says that nobody else has moved it on, so a step costs what it changes and not what
the chain holds.
"""

from __future__ import annotations

import secrets
from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import NamedTuple

from ksana.domain.alerts import alerts_of
from ksana.domain.chains import Chain
from ksana.domain.claims import Claim
from ksana.domain.errors import NotFound
from ksana.domain.jobs import Job
from ksana.domain.moves import Move
from ksana.domain.plans import read_plan, shape_of_plan
from ksana.domain.runs import Run
from ksana.domain.states import State
from ksana.domain.steering import Family, Steer, awaits_children, ended, risen
from ksana.domain.times import to_micros
from ksana.stores.sql.catalog import Catalog
from ksana.stores.sql.handing import pass_steps
from ksana.stores.sql.moving import Moves, apply_moves, goes_on, prepare
from ksana.stores.sql.outbox import keep_alerts
from ksana.stores.sql.rows import Row
from ksana.stores.sql.run_rows import run_from_row
from ksana.stores.sql.slots import fill_slots
from ksana.stores.sql.statements import (
    ADMIT_STEPS,
    CHILD_STATES,
    CHILDREN,
    ERRORS_OF_RUNS,
    LOCK_CHILDREN,
    LOCK_RUNS,
    RUNS_BY_ID,
    SKIP_STEPS,
)
from ksana.stores.sql.tx import Tx

_MOST_STEPS = 1_000_000
# More steps than this let in at once are claimed just as fast in the ordinary way.
FEW = 16


class Known(NamedTuple):
    """A chain on its way, good while the stamp stands; `first` is the id of its first child."""

    stamp: int
    first: int
    chain: Chain


class Families:
    """A bounded memory of chains on their way."""

    def __init__(self) -> None:
        self._chains: dict[int, Known] = {}
        self._steps = 0

    def take(self, parent_id: int, stamp: int) -> Known | None:
        """The chain, if it is known as it stands. Whoever takes it brings it back when all went well."""
        kept = self._chains.pop(parent_id, None)
        if kept is None:
            return None
        self._steps -= len(kept.chain.states)
        return kept if kept.stamp == stamp else None

    def known(self, parent_id: int) -> Known | None:
        """The chain as it was when it last moved on, here; whether it still stands so, the stamp tells."""
        return self._chains.get(parent_id)

    def keep(self, parent_id: int, kept: Known) -> None:
        self._chains[parent_id] = kept
        self._steps += len(kept.chain.states)
        while self._steps > _MOST_STEPS and len(self._chains) > 1:
            # Dicts keep insertion order, and a chain that moves is put in anew: the first has moved least.
            self.take(next(iter(self._chains)), -1)

    def drop(self, parent_ids: Iterable[int]) -> None:
        """Parents move by themselves; what is known of them is no longer so."""
        if self._chains:
            for parent_id in self._chains.keys() & set(parent_ids):
                self.take(parent_id, -1)

    def forget(self) -> None:
        """Start anew: what was worked out may have been undone."""
        self._chains.clear()
        self._steps = 0


class Moved(NamedTuple):
    """What moves did: which of them lost, how many runs that waited may start now, the steps done by the way and the
    parents that ended, and those of the runs let in that were claimed at once."""

    lost: frozenset[int]
    admitted: int
    followed: list[tuple[Move, Job | None]]
    handed: list[Row]


class Followed(NamedTuple):
    """What the moves led to: how many steps may start now, the steps that were done by the way, and the parents that
    ended, with their jobs."""

    admitted: int
    moves: list[tuple[Move, Job | None]]


async def move(
    tx: Tx, catalog: Catalog, families: Families, moves: Moves, hooks: Sequence[str], claim: Claim | None = None
) -> Moved:
    """Apply moves that still count, and all that follows from them; a claim for followers takes them at once."""
    families.drop(run_id for run_id, _ in moves.tried)
    if not moves.parents:
        lost, admitted = await apply_moves(tx, moves)
        return Moved(lost, admitted, [], [])
    progress = _Progress(tx, catalog, families, hooks, claim if claim is not None and claim.for_followers else None)
    # Before anything else is locked, so that those who move the same family on wait for each other and not in a circle.
    await progress.lock(moves.parents)
    lost, admitted = await apply_moves(tx, moves)
    # Only the rows tell where a family stands in which a child that was over goes on.
    families.drop(p for m in moves.tried.values() if (p := m.run.parent_id) is not None and goes_on(m))
    over = [m.run for m in moves.tried.values() if m.run.state.is_final and m.run.id not in lost]
    followed = await progress.follow(over)
    return Moved(lost, admitted + followed.admitted, followed.moves, progress.handed)


async def steer(
    tx: Tx,
    catalog: Catalog,
    families: Families,
    parent_id: int,
    decide: Steer,
    hooks: Sequence[str],
    above: Steer | None,
) -> list[tuple[Move, Job | None]]:
    progress = _Progress(tx, catalog, families, hooks)
    family = await progress.family(parent_id)
    moves = decide(family)
    told = await progress.steer(family, moves)
    while above and (run := risen(family, moves)) and run.parent_id is not None:
        family = await progress.family(run.parent_id)
        moves = above(family)
        told += await progress.steer(family, moves)
    over = [move.run for move in moves if move.run.id == family.parent.id and move.run.state.is_final]
    return [*told, *(await progress.follow(over)).moves]


class _Progress:
    """One transaction that moves families on."""

    def __init__(
        self, tx: Tx, catalog: Catalog, families: Families, hooks: Sequence[str], claim: Claim | None = None
    ) -> None:
        self.handed: list[Row] = []
        self._claim = claim
        self._tx = tx
        self._catalog = catalog
        self._families = families
        self._hooks = hooks
        self._stamp = secrets.randbits(62)
        self._stamps: dict[int, int] = {}

    async def lock(self, parent_ids: Iterable[int]) -> None:
        """Hold these families until the transaction ends."""
        self._stamps |= dict(await self._tx.stamp(sorted(parent_ids), self._stamp))

    async def family(self, parent_id: int) -> Family:
        """A family as it stands, held until the transaction ends."""
        if parent_id not in self._stamps:
            await self.lock([parent_id])
        self._families.drop([parent_id])
        parent = [run_from_row(row) for row in await self._tx.rows(LOCK_RUNS, ids=[parent_id])]
        if not parent:
            raise NotFound(f"there is no run {parent_id}")
        rows = await self._tx.rows(LOCK_CHILDREN, parent_id=parent_id)
        return Family(parent[0], [run_from_row(row) for row in rows])

    async def steer(self, family: Family, moves: list[Move]) -> list[tuple[Move, Job | None]]:
        """Make moves that were decided for a family."""
        if not moves:
            return []
        if (above := family.parent.parent_id) is not None:
            # A parent that was over may go on: whatever is known of the family above, here or elsewhere, is no longer
            # so.
            await self.lock([above])
            self._families.drop([above])
        await apply_moves(self._tx, prepare(moves))
        told = await self.with_jobs(moves)
        await self.alert([(move, job) for move, job in told if move.run.id == family.parent.id])
        return told

    async def with_jobs(self, moves: list[Move]) -> list[tuple[Move, Job | None]]:
        wanted = {(move.run.job_id, move.run.job_version) for move in moves if move.run.job_id is not None}
        jobs = await self._catalog.jobs(self._tx, wanted) if wanted else {}
        return [(move, jobs.get(move.run.job_id or 0)) for move in moves]

    async def alert(self, told: list[tuple[Move, Job | None]]) -> None:
        for move, job in told if self._hooks else ():
            now = move.run.ended_at
            if now is not None and (alerts := alerts_of([(move, job)], self._hooks, now)):
                await keep_alerts(self._tx, alerts)

    async def follow(self, over: list[Run]) -> Followed:
        """Move families on whose children are over, then those of the parents that ended by it, and so on."""
        admitted, told = 0, list[tuple[Move, Job | None]]()
        while over := [run for run in over if run.parent_id is not None]:
            step = await self._step(over)
            admitted += step.admitted
            told += step.passed
            told += await self.with_jobs(step.ends)
            over = [move.run for move in step.ends]
        await self.alert(told)
        if freed := sorted({move.run.job_id for move, _ in told if move.run.job_id is not None}):
            admitted += await fill_slots(self._tx, freed)
        return Followed(admitted, told)

    async def _step(self, over: list[Run]) -> _Step:
        """Move the families of these children on by one generation, all in a few statements."""
        by_parent = defaultdict[int, list[Run]](list)
        for run in over:
            by_parent[run.parent_id or 0].append(run)
        if missing := by_parent.keys() - self._stamps.keys():
            await self.lock(missing)
        known, parents = await self._known(by_parent)
        now = max(run.ended_at for run in over if run.ended_at is not None)
        admits: list[int] = []
        skips: list[int] = []
        passes: list[int] = []
        ends: dict[int, tuple[State, int | None]] = {}
        for parent_id, (_, first, chain) in known.items():
            chain.ended((run.id - first, run.state) for run in by_parent[parent_id])
            follows = chain.advance()
            admits += [first + place for place in follows.admits]
            skips += [first + place for place in follows.skips]
            passes += [first + place for place in follows.passes]
            if follows.end is None:
                self._families.keep(parent_id, Known(self._stamp, first, chain))
            else:
                failed = chain.first_failed
                ends[parent_id] = (follows.end, None if failed is None else first + failed)
        if admits:
            await self._admit(admits, to_micros(now))
        if skips:
            await self._tx.run(SKIP_STEPS, ids=skips, now=to_micros(now))
        told = passed_by(await pass_steps(self._tx, passes, to_micros(now))) if passes else []
        return _Step(len(admits), told, await self._end(ends, parents, now) if ends else [])

    async def _admit(self, ids: list[int], now: int) -> None:
        """Let steps in; a few for which there is room go straight to whoever ended what they waited for."""
        claim, count = self._claim, len(ids)
        if claim is not None and count <= FEW and count <= claim.limit - len(self.handed):
            rows = await self._tx.hand_over(ids, now, claim)
            self.handed += rows
            if len(rows) == count:
                return
        await self._tx.run(ADMIT_STEPS, ids=ids, now=now)

    async def _known(self, by_parent: dict[int, list[Run]]) -> tuple[dict[int, Known], dict[int, Run]]:
        """The chains as they were before these children ended, and such parents as had to be read for it. A parent that
        is over, or is none, has no chain: nothing follows for it."""
        known: dict[int, Known] = {}
        unknown: list[int] = []
        for parent_id in by_parent.keys() & self._stamps.keys():
            found = self._families.take(parent_id, self._stamps[parent_id])
            if found is None:
                unknown.append(parent_id)
            else:
                known[parent_id] = found
        if not unknown:
            return known, {}
        parents = await self._runs(unknown)
        over = {run.id for parent_id in unknown for run in by_parent[parent_id]}
        return known | await self._loaded([run for run in parents.values() if awaits_children(run)], over), parents

    async def _loaded(self, parents: list[Run], over: set[int]) -> dict[int, Known]:
        """Chains as their rows tell; the children that are just over are taken as still under way."""
        children = defaultdict[int, list[tuple[int, State]]](list)
        if parents:
            for id, parent_id, state in await self._tx.rows(CHILD_STATES, ids=[run.id for run in parents]):
                children[parent_id].append((id, State.RUNNING if id in over else State(state)))
        found: dict[int, Known] = {}
        for run in parents:
            if rows := sorted(children[run.id]):
                states = [state for _, state in rows]
                chain = Chain(shape_of_plan(read_plan(run.input)), states, is_stopping=run.state is State.STOPPING)
                found[run.id] = Known(0, rows[0][0], chain)
        return found

    async def _runs(self, ids: Iterable[int]) -> dict[int, Run]:
        return {row[0]: run_from_row(row) for row in await self._tx.rows(RUNS_BY_ID, ids=sorted(ids))}

    async def _end(
        self, ends: dict[int, tuple[State, int | None]], parents: dict[int, Run], now: datetime
    ) -> list[Move]:
        """End parents whose children have come to an end; a failure is told by the step that failed."""
        if missing := ends.keys() - parents.keys():
            parents = parents | await self._runs(missing)
        failed = [child for _, child in ends.values() if child is not None]
        rows = await self._tx.rows(ERRORS_OF_RUNS, ids=failed) if failed else []
        errors = {id: f"{step}: {error}" for id, step, error in rows}
        moves = [
            Move(parent.epoch, ended(parent, end, now, errors.get(child or 0, "")))
            for parent_id, (end, child) in ends.items()
            # Somebody may have ended it by hand.
            if not (parent := parents[parent_id]).state.is_final
        ]
        lost, _ = await apply_moves(self._tx, prepare(moves))
        return [move for move in moves if move.run.id not in lost]


class _Step(NamedTuple):
    admitted: int
    passed: list[tuple[Move, Job | None]]
    ends: list[Move]


def passed_by(rows: Iterable[Row]) -> list[tuple[Move, Job | None]]:
    """The moves by which steps that do nothing were done, from their rows after it."""
    return [(Move(run.epoch - 1, run), None) for run in map(run_from_row, rows)]


async def children(tx: Tx, parent_id: int) -> list[Run]:
    return [run_from_row(row) for row in await tx.rows(CHILDREN, parent_id=parent_id)]
