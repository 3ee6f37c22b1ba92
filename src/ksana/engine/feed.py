"""The live feed of a node: what happens, handed to whoever listens just now. It rests while nobody does.

A listener gets the newest word on each thing, not every word; one that is too slow, or was away for too long, is told
to look at everything again.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

import msgspec

from ksana.domain.claims import Claimed
from ksana.domain.fires import Gap
from ksana.domain.jobs import Job
from ksana.domain.moves import Move
from ksana.domain.ports import Clock
from ksana.domain.queries import Counts, QueueCounts
from ksana.domain.runs import Run
from ksana.domain.times import to_micros
from ksana.engine.loops import rest
from ksana.engine.operations import Operation

REMEMBERED: Final = timedelta(minutes=5)
"""How long a listener may be away and still be told what it has missed."""

_MOST_REMEMBERED: Final = 5000
_MOST_PENDING: Final = 1000


class Topic(StrEnum):
    """What a listener may be interested in."""

    RUN = "run"
    JOB = "job"
    QUEUE = "queue"
    STATS = "stats"
    OPERATION = "operation"


class RunNews(msgspec.Struct, frozen=True, gc=False):
    """A run that was made or moved, and the name of its job."""

    run: Run
    job_name: str | None


Subject = RunNews | Job | Counts | QueueCounts | Operation


class News(msgspec.Struct, frozen=True, gc=False):
    """One thing that is different now. Numbers rise, and those of a later process are higher."""

    number: int
    at: datetime
    topic: Topic
    key: int | str
    subject: Subject


class Listener:
    """Somebody who hears of some topics. `is_lost` says that news were dropped."""

    def __init__(self, clock: Clock, topics: Collection[Topic]) -> None:
        self.topics = frozenset(topics)
        self.is_lost = False
        self._clock = clock
        self._pending: dict[tuple[Topic, int | str], News] = {}
        self._told = asyncio.Event()
        self._is_closed = False

    @property
    def is_closed(self) -> bool:
        return self._is_closed

    def hear(self, news: News) -> None:
        if news.topic not in self.topics:
            return
        key = (news.topic, news.key)
        # The newest word on a thing goes to the end, so that numbers rise in the order they are told.
        self._pending.pop(key, None)
        if len(self._pending) >= _MOST_PENDING:
            self.lose()
            return
        self._pending[key] = news
        self._told.set()

    def lose(self) -> None:
        """What it has missed cannot be told one by one any more."""
        self._pending.clear()
        self.is_lost = True
        self._told.set()

    def close(self) -> None:
        self._is_closed = True
        self._told.set()

    async def wait(self, most: timedelta) -> None:
        """Return once there is something to tell, or after so long."""
        if not self._told.is_set():
            await rest(self._clock, self._told, most)

    async def pause(self, span: timedelta) -> None:
        """Let news gather for so long; a listener that is closed does not wait."""
        if not self._is_closed:
            await self._clock.sleep(span)

    def taken(self) -> tuple[bool, list[News]]:
        """Whether to look at everything again, and the news since the last time."""
        is_lost, news = self.is_lost, list(self._pending.values())
        self.is_lost = False
        self._pending.clear()
        if not self._is_closed:
            self._told.clear()
        return is_lost, news


class Feed:
    """An observer that passes on what it is told."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._listeners: set[Listener] = set()
        self._ring: deque[News] = deque(maxlen=_MOST_REMEMBERED)
        self._first = self._last = 0
        self._lost: dict[Topic, int] = {}
        """Behind which number news of a topic were lost, for those who are just reconnecting."""
        self._left_at: datetime | None = None
        self._is_closed = False

    # Listening

    def listen(self, topics: Collection[Topic], after: int | None = None) -> Listener:
        """Begin to listen; with `after`, the news behind that number come first, as far as they are remembered."""
        now = self._clock.now()
        self._wake_up(now)
        listener = Listener(self._clock, topics)
        if after is not None:
            if not self._first <= after <= self._last or any(after < self._lost.get(topic, 0) for topic in topics):
                listener.lose()
            else:
                for news in self._ring:
                    if news.number > after:
                        listener.hear(news)
        self._listeners.add(listener)
        if self._is_closed:
            listener.close()
        return listener

    def leave(self, listener: Listener) -> None:
        self._listeners.discard(listener)
        if not self._listeners:
            self._left_at = self._clock.now()

    def close(self) -> None:
        """Nobody is kept listening any more."""
        self._is_closed = True
        for listener in self._listeners:
            listener.close()

    @property
    def is_heard(self) -> bool:
        return bool(self._listeners)

    @property
    def last(self) -> int:
        """The number of the newest news."""
        return self._last

    def wants(self, topic: Topic) -> bool:
        """Whether anybody listens to this."""
        return any(topic in listener.topics for listener in self._listeners)

    def lose_all(self, topics: Collection[Topic]) -> None:
        """Those who listen to one of these have missed something, and those who are away and come back."""
        if not self._remembers(self._clock.now()):
            return
        self._last += 1
        self._lost |= dict.fromkeys(topics, self._last)
        for listener in self._listeners:
            if not listener.topics.isdisjoint(topics):
                listener.lose()

    def _wake_up(self, now: datetime) -> None:
        """Begin to remember. What happened while nobody listened for long is not known, so its numbers are void."""
        if not self._remembers(now):
            self._ring.clear()
            self._first = self._last = max(self._last + 1, to_micros(now))
        while self._ring and now - self._ring[0].at > REMEMBERED:
            self._first = self._ring.popleft().number
        self._left_at = None

    def _remembers(self, now: datetime) -> bool:
        if self._listeners:
            return True
        return self._left_at is not None and now - self._left_at <= REMEMBERED

    # Telling

    def say(self, topic: Topic, key: int | str, subject: Subject, now: datetime) -> None:
        """Pass this on, and keep it for those who are just reconnecting."""
        if not self._remembers(now):
            return
        self._last += 1
        news = News(self._last, now, topic, key, subject)
        if len(self._ring) == _MOST_REMEMBERED:
            self._first = self._ring[0].number
        self._ring.append(news)
        for listener in self._listeners:
            listener.hear(news)

    def say_run(self, run: Run, job: Job | None, now: datetime) -> None:
        # A step of a chain comes with the job that stands for it, which nobody knows by its name.
        name = job.name if job is not None and job.id == run.job_id else None
        self.say(Topic.RUN, run.id, RunNews(run, name), now)

    def on_changed(self, jobs: Sequence[Job], runs: Sequence[Claimed], now: datetime) -> None:
        for job in jobs:
            self.say(Topic.JOB, job.id, job, now)
        for made in runs:
            self.say_run(made.run, made.job, now)

    def on_fired(self, runs: Sequence[Claimed], gaps: Sequence[Gap], now: datetime) -> None:
        if not self._remembers(now):
            return
        for fired in runs:
            self.say_run(fired.run, fired.job, now)
            if fired.job is not None:
                self.say(Topic.JOB, fired.job.id, fired.job, now)

    def on_started(self, claimed: Sequence[Claimed], now: datetime) -> None:
        if not self._remembers(now):
            return
        for one in claimed:
            self.say_run(one.run, one.job, now)

    def on_moved(self, moves: Sequence[tuple[Move, Job | None]], now: datetime) -> None:
        if not self._remembers(now):
            return
        for move, job in moves:
            self.say_run(move.run, job, now)

    def on_lost(self, run_ids: Iterable[int], now: datetime) -> None: ...

    def on_store(self, available: bool, error: str) -> None:
        # Nobody knows what others did meanwhile.
        if available:
            self.lose_all(frozenset(Topic))

    def on_clock_jump(self, jump: timedelta) -> None: ...
