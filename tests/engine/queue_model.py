"""What the queue should do, in the plainest words: a list of items and rules anybody can read."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from ksana.domain.limits import Rate


@dataclass
class Thing:
    """An item as the model knows it."""

    id: int
    due_at: datetime
    priority: int
    max_attempts: int
    key: str | None
    state: str = "queued"
    attempt: int = 0
    failures: int = 0
    until: datetime | None = None
    holder: str | None = None

    @property
    def token(self) -> str:
        return f"{self.id}.{self.attempt}"


@dataclass
class QueueModel:
    """One queue, its items and its limits."""

    things: dict[int, Thing] = field(default_factory=dict)
    is_paused: bool = False
    concurrency: int | None = None
    key_concurrency: int | None = None
    rate: Rate | None = None
    busy_until: datetime | None = None

    def held(self, key: str | None = None) -> int:
        return sum(one.state == "held" and (key is None or one.key == key) for one in self.things.values())

    def pull(self, now: datetime, limit: int, holder: str, lease: timedelta) -> list[int]:
        """Who is handed out: the due ones by instant, priority, number; as many as limits allow."""
        due = [one for one in self.things.values() if one.state == "queued" and one.due_at <= now]
        handed: list[int] = []
        for one in sorted(due, key=lambda one: (one.due_at, -one.priority, one.id)):
            if len(handed) == limit or self.is_paused or not self._has_room(now):
                break
            if one.key is not None and self.key_concurrency is not None and self.held(one.key) >= self.key_concurrency:
                continue
            self._take(now)
            one.state, one.attempt, one.until, one.holder = "held", one.attempt + 1, now + lease, holder
            handed.append(one.id)
        return handed

    def _has_room(self, now: datetime) -> bool:
        if self.concurrency is not None and self.held() >= self.concurrency:
            return False
        if self.rate is None or self.busy_until is None:
            return True
        return self.busy_until <= now + self.rate.per - self.rate.step

    def _take(self, now: datetime) -> None:
        if self.rate is not None:
            self.busy_until = max(self.busy_until or now, now) + self.rate.step

    def failed(self, one: Thing, now: datetime, delay: timedelta) -> None:
        one.failures += 1
        one.until = None
        if one.failures >= one.max_attempts:
            one.state = "dead"
            return
        one.state = "queued"
        later = one.due_at + delay
        one.due_at = later if later > now else now + delay

    def lapse(self, now: datetime) -> None:
        """Leases that are over count as failures."""
        for one in self.things.values():
            if one.state == "held" and one.until is not None and one.until <= now:
                one.failures += 1
                one.until = None
                one.state, one.due_at = ("dead", one.due_at) if one.failures >= one.max_attempts else ("queued", now)
