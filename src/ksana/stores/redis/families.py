"""Families: what the end of a child means for its siblings and its parent.

It is worked out here, from what was read, and stored with the moves it follows from by one script, which does nothing
if a family has moved on meanwhile. Every family has a stamp that says so. A chain kept in memory is good as long as its
stamp stands, so a step costs what it changes and not what the chain holds.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import msgspec

from ksana.domain.alerts import alerts_of
from ksana.domain.chains import Chain, Shape
from ksana.domain.errors import InvalidArgument
from ksana.domain.jobs import Job
from ksana.domain.moves import Move, pass_by
from ksana.domain.plans import read_plan, shape_of_plan
from ksana.domain.runs import Run
from ksana.domain.states import State
from ksana.domain.steering import ended
from ksana.domain.times import to_micros
from ksana.stores.redis.catalog import Catalog
from ksana.stores.redis.codes import STATES
from ksana.stores.redis.link import Link
from ksana.stores.redis.moving import alerts_args, moves_args, stored_run
from ksana.stores.redis.reading import runs_by_id
from ksana.stores.redis.scripts import LOOK
from ksana.stores.redis.values import run_from_value

log = logging.getLogger(__name__)

Told = list[tuple[Move, Job | None]]
"""Moves, each with the job of its run."""

_MOST_STEPS = 1_000_000
_UNKNOWN = b""
_STATE_OF = {letter: state for state, letter in STATES.items()}


class Known(NamedTuple):
    """A chain on its way, good while the stamp stands; `first` is the id of its first child."""

    stamp: bytes
    first: int
    chain: Chain


class Families:
    """A bounded memory of chains on their way."""

    def __init__(self) -> None:
        self._chains: dict[int, Known] = {}
        self._steps = 0

    def take(self, parent_id: int) -> Known | None:
        """The chain as it was left. Whoever takes it brings it back when all went well."""
        known = self._chains.pop(parent_id, None)
        if known is not None:
            self._steps -= len(known.chain.states)
        return known

    def keep(self, parent_id: int, known: Known) -> None:
        self.take(parent_id)
        self._chains[parent_id] = known
        self._steps += len(known.chain.states)
        while self._steps > _MOST_STEPS and len(self._chains) > 1:
            # Dicts keep insertion order, and a chain that moves is put in anew: the first has moved least.
            self.take(next(iter(self._chains)))

    def forget(self) -> None:
        """Start anew: the store may be another one."""
        self._chains.clear()
        self._steps = 0


class _Step(NamedTuple):
    """Children of one family that may start, and those that never will, at an instant."""

    now: datetime
    admits: list[int]
    skips: list[int]


class _Seen(NamedTuple):
    """A family as it was looked at: its stamp, the parent, and the chain if the parent waits for its children."""

    stamp: bytes
    parent: Run | None
    first: int
    chain: Chain | None


class Follow:
    """What follows from moves: worked out generation by generation, from the children that ended up to the roots."""

    def __init__(self, link: Link, catalog: Catalog, families: Families, moved: Iterable[Move]) -> None:
        self._link = link
        self._catalog = catalog
        self._families = families
        self._moved = {move.run.id: stored_run(move) for move in moved}
        # A chain in memory can be told of ends, and of nothing else.
        self._anew = {run.parent_id for run in self._moved.values() if run.ended_at is None} | self._moved.keys()
        self._seen: dict[int, _Seen] = {}
        self._steps: list[_Step] = []
        self._ends: list[Move] = []
        self.told: Told = []

    async def work_out(self, over: Iterable[Run]) -> None:
        """Move the families on whose children ended, then those of the parents that ended by it, and so on."""
        news = _by_parent(over)
        while news:
            await self._look([parent_id for parent_id in news if parent_id not in self._seen])
            ends = [end for parent_id, runs in sorted(news.items()) if (end := await self._move_on(parent_id, runs))]
            self._ends += ends
            self.told += await with_jobs(self._catalog, ends)
            news = _by_parent(move.run for move in ends)

    async def _look(self, parent_ids: list[int]) -> None:
        if not parent_ids:
            return
        # Whoever looks at the same family meanwhile must not have the same chain in hand.
        known = {parent_id: self._families.take(parent_id) for parent_id in parent_ids}
        asked: list[Any] = []
        for parent_id, one in known.items():
            asked += (parent_id, _UNKNOWN if one is None or parent_id in self._anew else one.stamp)
        _, families = await self._link.run(LOOK, 0, len(parent_ids), *asked)
        for (parent_id, one), reply in zip(known.items(), families, strict=True):
            self._seen[parent_id] = self._read(parent_id, one, *reply)

    def _read(self, parent_id: int, known: Known | None, stamp: bytes, value: bytes | None, *unknown: Any) -> _Seen:
        parent = self._moved.get(parent_id) or (None if value is None else run_from_value(value, None))
        if parent is None or not _is_waiting(parent):
            return _Seen(stamp, parent, 0, None)
        if not unknown and known is not None:
            return _Seen(stamp, parent, known.first, known.chain)
        plan, first, letters = unknown
        shape = _shape_of(parent_id, plan)
        if shape is None or len(shape.needs) != len(letters):
            return _Seen(stamp, parent, 0, None)
        # Those that are just over are taken as still under way, and told of like any other.
        states = [_STATE_OF[letter] for letter in letters.decode()]
        for place in range(len(states)):
            run = self._moved.get(int(first) + place)
            if run is not None:
                states[place] = State.RUNNING if run.ended_at is not None else run.state
        return _Seen(stamp, parent, int(first), Chain(shape, states, is_stopping=parent.state is State.STOPPING))

    async def _move_on(self, parent_id: int, runs: list[Run]) -> Move | None:
        """Work out what follows from the end of these children; answer the end of their parent, if it has come."""
        seen = self._seen[parent_id]
        if seen.chain is None or seen.parent is None:
            return None
        seen.chain.ended((run.id - seen.first, run.state) for run in runs)
        follows = seen.chain.advance()
        now = max(run.ended_at for run in runs if run.ended_at is not None)
        admits, skips = ([seen.first + place for place in places] for places in (follows.admits, follows.skips))
        self._steps.append(_Step(now, admits, skips))
        await self._pass([seen.first + place for place in follows.passes], now)
        if follows.end is None:
            return None
        parent, error = await self._last_look(parent_id, seen)
        over = ended(parent, follows.end, now, error)
        self._moved[parent_id] = over
        self._seen[parent_id] = seen._replace(parent=over, chain=None)
        return Move(parent.epoch, over, frees_slot=True)

    async def _pass(self, run_ids: list[int], now: datetime) -> None:
        """Steps that do nothing are done."""
        if run_ids:
            moves = [Move(run.epoch, pass_by(run, now)) for run in await runs_by_id(self._link, run_ids)]
            self._ends += moves
            self.told += [(move, None) for move in moves]

    async def _last_look(self, parent_id: int, seen: _Seen) -> tuple[Run, str]:
        """The parent with its plan, and what it says of a step that failed."""
        assert seen.chain is not None and seen.parent is not None
        place = seen.chain.first_failed
        child_id = None if place is None else seen.first + place
        unread = {parent_id, child_id} - self._moved.keys() - {None}
        runs = {run.id: run for run in await runs_by_id(self._link, (id for id in unread if id is not None))}
        parent = self._moved.get(parent_id) or runs.get(parent_id) or seen.parent
        child = None if child_id is None else self._moved.get(child_id) or runs.get(child_id)
        return parent, "" if child is None else f"{child.step}: {child.error}"

    def stamps_args(self, *others: tuple[int, bytes]) -> list[Any]:
        stamps = [*((parent_id, seen.stamp) for parent_id, seen in self._seen.items()), *others]
        return [len(stamps), *(part for stamp in stamps for part in stamp)]

    def steps_args(self) -> list[Any]:
        args: list[Any] = [len(self._steps)]
        for step in self._steps:
            args += (to_micros(step.now), len(step.admits), *step.admits, len(step.skips), *step.skips)
        return [*args, *moves_args(self._ends)]

    def keep(self, stamps: Sequence[bytes]) -> None:
        """It was stored, and the families have these stamps now: what is known of them can be used again."""
        for (parent_id, seen), stamp in zip(self._seen.items(), stamps, strict=False):
            if seen.chain is not None:
                self._families.keep(parent_id, Known(stamp, seen.first, seen.chain))


def alerts_for(told: Told, hooks: Sequence[str]) -> list[Any]:
    """The alerts that these moves leave for hooks, as scripts take them."""
    return alerts_args(
        [
            alert
            for move, job in (told if hooks else [])
            if move.run.ended_at is not None
            for alert in alerts_of([(move, job)], hooks, move.run.ended_at)
        ]
    )


async def with_jobs(catalog: Catalog, moves: Sequence[Move]) -> Told:
    wanted = {(move.run.job_id, move.run.job_version) for move in moves if move.run.job_id is not None}
    jobs = await catalog.jobs(wanted)
    return [(move, None if move.run.job_id is None else jobs.get(move.run.job_id)) for move in moves]


def ended_children(runs: Iterable[Run]) -> list[Run]:
    """Those whose end means something for a family."""
    return [run for run in runs if run.parent_id is not None and run.ended_at is not None]


def _by_parent(runs: Iterable[Run]) -> dict[int, list[Run]]:
    found: dict[int, list[Run]] = {}
    for run in ended_children(runs):
        assert run.parent_id is not None
        found.setdefault(run.parent_id, []).append(run)
    return found


def _is_waiting(parent: Run) -> bool:
    """Whether a run waits for its children."""
    return parent.state is State.STOPPING or (parent.state is State.RUNNING and parent.node_id is None)


def _shape_of(parent_id: int, plan: bytes | None) -> Shape | None:
    try:
        return shape_of_plan(read_plan(plan))
    except (msgspec.DecodeError, UnicodeDecodeError, InvalidArgument) as error:
        # Whoever wrote it, others move in the same step and must not be held up by it.
        log.error("run %d cannot go on, because its plan cannot be read: %s", parent_id, error)
        return None
