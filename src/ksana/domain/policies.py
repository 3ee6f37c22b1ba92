"""Policies as values: what to do about failure, overlap, lateness and doubt. They decide; the engine only asks."""

from __future__ import annotations

from datetime import timedelta
from enum import IntEnum, StrEnum

import msgspec

DEFAULT_TIMEOUT = timedelta(seconds=10)
DEFAULT_CONNECT_TIMEOUT = timedelta(seconds=5)
DEFAULT_CALLBACK_TIMEOUT = timedelta(seconds=300)
DEFAULT_RETRY_DELAY = timedelta(seconds=5)
DEFAULT_MAX_DELAY = timedelta(hours=1)


class Priority(IntEnum):
    """Which due run goes first when not all can: every due HIGH run before any NORMAL one."""

    LOW = 1
    NORMAL = 2
    HIGH = 3


class RetryStrategy(StrEnum):
    FIXED = "fixed"
    EXPONENTIAL = "exponential"


class Retry(msgspec.Struct, frozen=True):
    """How often a failed run is tried again, and how long it rests before each try."""

    max_attempts: int = 1
    strategy: RetryStrategy = RetryStrategy.FIXED
    initial_delay: timedelta = DEFAULT_RETRY_DELAY
    multiplier: float = 2.0
    max_delay: timedelta = DEFAULT_MAX_DELAY

    def allows_another(self, failures: int) -> bool:
        """May a run that has failed this often be tried once more?"""
        return failures < self.max_attempts

    def delay_after(self, failures: int, retry_after: timedelta | None = None) -> timedelta:
        """The rest after the given number of failures (from 1); a target's Retry-After lengthens it, up to the cap."""
        delay = self.initial_delay
        if self.strategy is RetryStrategy.EXPONENTIAL:
            delay = self._grown(failures)
        if retry_after is not None:
            delay = max(delay, min(retry_after, self.max_delay))
        return delay

    def _grown(self, failures: int) -> timedelta:
        try:
            return min(self.initial_delay * self.multiplier ** (failures - 1), self.max_delay)
        except OverflowError:
            return self.max_delay


class OverlapRule(StrEnum):
    """What a run does when its job already has as many as it may."""

    QUEUE = "queue"
    SKIP = "skip"
    PARALLEL = "parallel"


class Overlap(msgspec.Struct, frozen=True):
    """How many runs of one job may be alive at once, and what happens to one too many."""

    rule: OverlapRule = OverlapRule.QUEUE
    max_concurrency: int = 1

    @property
    def limit(self) -> int | None:
        """The number of slots, or None when the job has no limit."""
        return None if self.rule is OverlapRule.PARALLEL else self.max_concurrency


class MisfireRule(StrEnum):
    """What becomes of slots found too late."""

    SKIP = "skip"
    FIRE_ONCE = "fire_once"
    CATCH_UP = "catch_up"


class Misfire(msgspec.Struct, frozen=True):
    """What becomes of slots found too late; `limit` is how many of the newest are caught up."""

    rule: MisfireRule = MisfireRule.FIRE_ONCE
    limit: int = 0

    @property
    def keeps(self) -> int:
        """How many of the newest misfired slots still get a run."""
        match self.rule:
            case MisfireRule.SKIP:
                return 0
            case MisfireRule.FIRE_ONCE:
                return 1
            case MisfireRule.CATCH_UP:
                return self.limit


class OnUncertain(StrEnum):
    """What to do with a run whose worker vanished: nobody knows whether its target was called."""

    RETRY = "retry"
    FAIL = "fail"


class Timeouts(msgspec.Struct, frozen=True):
    """How long one attempt may take, how long connecting may, and how long a callback is awaited."""

    total: timedelta = DEFAULT_TIMEOUT
    connect: timedelta = DEFAULT_CONNECT_TIMEOUT
    callback: timedelta = DEFAULT_CALLBACK_TIMEOUT
