"""Who of the items that are due is handed out: what the settings of a queue and the objects of its items say about it.

A store shows candidates in the order of `items.pull_key`, page by page, and tells what it knows of their subjects; all
that is decided here, inside its step.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final

import msgspec

from ksana.domain.items import Pull, held_back, pulled
from ksana.domain.limits import QueueSettings, Rate, has_room, taken
from ksana.domain.objects import GovernedObject, action_of, spent, why_not_verified
from ksana.domain.runs import Run

MOST_LOOKED_AT: Final = 10_000
"""How many due items a pull looks at, at most, if it must pass over some."""


MOST_PASSED: Final = 100_000
"""How many more it passes over, at most, whose subject is known to have no room. A store may leave those out."""

MOST_TOLD: Final = 200
"""Of how many items that are held back or refused a pull tells, at most; a later one tells of the others."""


class Known(msgspec.Struct, frozen=True):
    """What is known of a subject: its object, if it is one; how many of the queue's items about it are held; until when
    its bucket is busy."""

    governed: GovernedObject | None = None
    held: int = 0
    busy_until: datetime | None = None


class Refusal(msgspec.Struct, frozen=True):
    """An item that must never be handed out, and why."""

    run: Run
    error: str


class Pulled(msgspec.Struct, frozen=True):
    """What a pull came to: items handed out, items that are refused for ever, and items whose object is held back by
    its gates while that was not said of them yet. The last two are as they were: it is up to the caller to say so."""

    runs: list[Run]
    refused: list[Refusal] = []
    blocked: list[Run] = []


class HandingOut:
    """One pull. `held` and `busy_until` are those of the whole queue."""

    def __init__(
        self, pull: Pull, settings: QueueSettings | None, held: int = 0, busy_until: datetime | None = None
    ) -> None:
        self._pull = pull
        self._now = pull.begun_at
        self._settings = settings
        self._held = held
        self._buckets: dict[str, datetime] = {} if busy_until is None else {"": busy_until}
        self._known: dict[str, Known] = {}
        self._looked_at = 0
        self._passed = 0
        self.full: set[str] = set()
        """Subjects of which nothing more is handed out by this pull."""
        self.handed: list[Run] = []
        self.refused: list[Refusal] = []
        self.blocked: list[Run] = []
        self.objects: dict[str, GovernedObject] = {}
        """Objects that changed, by subject."""
        self.buckets: dict[str, datetime] = {}
        """Until when buckets are busy now, by subject; the empty one is that of the queue."""

    @property
    def is_over(self) -> bool:
        """Whether there is no use in showing more."""
        return (
            len(self.handed) >= self._pull.limit
            or self._looked_at >= MOST_LOOKED_AT
            or self._passed >= MOST_PASSED
            or (self._settings is not None and not self._has_room(self._settings))
        )

    def _has_room(self, settings: QueueSettings) -> bool:
        if settings.is_paused:
            return False
        if settings.concurrency is not None and self._held >= settings.concurrency:
            return False
        return settings.rate is None or has_room(settings.rate, self._buckets.get(""), self._now)

    def unknown(self, page: Iterable[Run]) -> list[str]:
        """Of which subjects one has to tell before this page is shown, sorted."""
        return sorted({run.subject for run in page if run.subject is not None} - self._known.keys())

    def learn(self, known: dict[str, Known]) -> None:
        """What is known of subjects. One that is asked for and not told of is taken for new."""
        for subject, one in known.items():
            self._known[subject] = one
            if one.busy_until is not None:
                self._buckets[subject] = one.busy_until

    def offer(self, page: Sequence[Run]) -> None:
        """Hand out what may be, in this order."""
        # Those that share a page with the first that is held back are told of like it.
        on_page = {run.subject for run in page} - self.full
        for run in page:
            if self.is_over:
                return
            if run.subject in self.full and run.subject not in on_page:
                self._passed += 1
                continue
            self._looked_at += 1
            if self._is_free(run):
                self._hand(run)

    def _is_free(self, run: Run) -> bool:
        if run.subject is None:
            return True
        known = self._known.get(run.subject, Known())
        governed = known.governed
        if governed is not None:
            if governed.is_held_back:
                self.full.add(run.subject)
                if len(self.blocked) < MOST_TOLD and held_back(run, self._now) is not None:
                    self.blocked.append(run)
                return False
            if error := why_not_verified(governed, action_of(run.step)):
                if len(self.refused) < MOST_TOLD:
                    self.refused.append(Refusal(run, error))
                return False
            if governed.is_one_at_a_time and known.held > 0:
                return self._pass_over(run.subject)
        settings = self._settings
        if settings is None:
            return True
        if settings.key_concurrency is not None and known.held >= settings.key_concurrency:
            return self._pass_over(run.subject)
        if settings.key_rate is None or has_room(settings.key_rate, self._buckets.get(run.subject), self._now):
            return True
        return self._pass_over(run.subject)

    def _pass_over(self, subject: str) -> bool:
        self.full.add(subject)
        return False

    def _hand(self, run: Run) -> None:
        self.handed.append(pulled(run, self._pull))
        self._held += 1
        settings = self._settings
        if settings is not None and settings.rate is not None:
            self._take(settings.rate, "")
        if run.subject is None:
            return
        if settings is not None and settings.key_rate is not None:
            self._take(settings.key_rate, run.subject)
        known = self._known.get(run.subject, Known())
        governed = known.governed
        if governed is not None and (after := spent(governed, action_of(run.step), self._now)) is not governed:
            self.objects[run.subject] = governed = after
        self._known[run.subject] = Known(governed, known.held + 1)

    def _take(self, rate: Rate, bucket: str) -> None:
        self.buckets[bucket] = self._buckets[bucket] = taken(rate, self._buckets.get(bucket), self._now)
