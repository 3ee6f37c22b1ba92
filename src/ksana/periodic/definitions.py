"""Jobs written down in code: decorators that note what a function is to do and when, and leave the function alone.

Nothing here reads or writes anything but memory; what cannot work is refused at the line that says it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, Literal, TypedDict, TypeVar, Unpack

import msgspec

from ksana.domain.durations import parse_duration
from ksana.domain.errors import AlreadyExists, InvalidArgument, Problem
from ksana.domain.jobs import JobSpec, TargetSpec
from ksana.domain.policies import (
    DEFAULT_RETRY_DELAY,
    DEFAULT_TIMEOUT,
    Misfire,
    MisfireRule,
    Overlap,
    OverlapRule,
    Priority,
    Retry,
    RetryStrategy,
    Timeouts,
)
from ksana.domain.runs import DEFAULT_QUEUE
from ksana.domain.schedules import CronSchedule, Every, Once, Schedule
from ksana.domain.times import EPOCH, parse_instant
from ksana.domain.validation import problems_of

F = TypeVar("F", bound=Callable[..., Any])
Span = str | timedelta
Instant = str | datetime

_NONE: Final = timedelta(0)
_RANGE: Final = ".."


class Rules(TypedDict, total=False):
    """What every decorator takes besides the when.

    `name` is the function's own unless said; `args` and `kwargs` are what it is called with. `backoff` is a span
    between tries, or two of them, `"5s..60s"`, for one that doubles. `catch_up` is how many missed slots the misfire
    rule of that name makes up for.
    """

    name: str
    args: Sequence[Any]
    kwargs: Mapping[str, Any]
    retries: int
    backoff: Span
    timeout: Span
    overlap: Literal["queue", "skip", "parallel"]
    max_concurrency: int
    misfire: Literal["skip", "fire_once", "catch_up"]
    catch_up: int
    priority: Literal["high", "normal", "low"]
    queue: str
    tags: Sequence[str]
    description: str


class Definition(msgspec.Struct, frozen=True):
    """A function and what code says of its job. An interval counts from 1970 until its job is made."""

    name: str
    function: Callable[..., Any]
    spec: JobSpec


class Definitions:
    """The jobs of a program, or of one of its modules."""

    def __init__(self) -> None:
        self._own: dict[str, Definition] = {}
        self._included: list[Definitions] = []

    def every(
        self, span: Span, *, jitter: Span = _NONE, start_at: Instant | None = None, **rules: Unpack[Rules]
    ) -> Callable[[F], F]:
        """Call the function at intervals."""
        start = None if start_at is None else _instant(start_at, "start_at")
        schedule = Every(_span(span, "every"), EPOCH, start_at=start, jitter=_span(jitter, "jitter"))
        return self._decorator(schedule, rules)

    def cron(self, expr: str, *, tz: str = "UTC", jitter: Span = _NONE, **rules: Unpack[Rules]) -> Callable[[F], F]:
        """Call the function whenever a cron expression fires on the wall clocks of a zone."""
        return self._decorator(CronSchedule(expr, tz, jitter=_span(jitter, "jitter")), rules)

    def at(self, instant: Instant, **rules: Unpack[Rules]) -> Callable[[F], F]:
        """Call the function once."""
        return self._decorator(Once(_instant(instant, "at")), rules)

    def include(self, other: Definitions) -> None:
        """Have the jobs of another module too, also those it will still write down."""
        if self in other._family():
            raise InvalidArgument.of("include", "these definitions include this very app already")
        self._included.append(other)

    @property
    def definitions(self) -> dict[str, Definition]:
        """All jobs by name, those of included modules among them. AlreadyExists if two have the same name."""
        found: dict[str, Definition] = {}
        for each in self._family():
            for name, definition in each._own.items():
                if name in found:
                    raise AlreadyExists(f"two jobs are called {name!r}; give one of them another with name=…")
                found[name] = definition
        return found

    @property
    def functions(self) -> dict[str, Callable[..., Any]]:
        """What the workers call, by name."""
        return {name: definition.function for name, definition in self.definitions.items()}

    def _family(self) -> list[Definitions]:
        found = [self]
        for other in self._included:
            found += [each for each in other._family() if each not in found]
        return found

    def _decorator(self, schedule: Schedule, rules: Rules) -> Callable[[F], F]:
        def decorate(function: F) -> F:
            own_name: str = getattr(function, "__name__", "")
            name = rules.get("name", own_name if own_name.isidentifier() else "")
            if not name:
                raise InvalidArgument.of("name", "this function has none; say name=…")
            if name in self._own:
                raise AlreadyExists(f"two jobs are called {name!r}; give one of them another with name=…")
            self._own[name] = Definition(name, function, _spec(name, schedule, rules))
            return function

        return decorate


def _spec(name: str, schedule: Schedule, rules: Rules) -> JobSpec:
    problems: list[Problem] = []
    if unknown := rules.keys() - Rules.__optional_keys__:
        problems += [Problem(field, "is nothing a job knows") for field in sorted(unknown)]
    spec = JobSpec(
        name=name,
        ref=name,
        target=TargetSpec(
            "python",
            {"function": name, "args": list(rules.get("args", ())), "kwargs": dict(rules.get("kwargs", {}))},
        ),
        schedule=schedule,
        description=rules.get("description", ""),
        tags=tuple(rules.get("tags", ())),
        queue=rules.get("queue", DEFAULT_QUEUE),
        priority=_chosen(Priority.__members__, rules.get("priority", "normal"), "priority", problems, Priority.NORMAL),
        retry=_retry(rules.get("retries", 0), rules.get("backoff", DEFAULT_RETRY_DELAY)),
        overlap=Overlap(
            _chosen(OverlapRule.__members__, rules.get("overlap", "queue"), "overlap", problems, OverlapRule.QUEUE),
            rules.get("max_concurrency", 1),
        ),
        misfire=_misfire(rules, problems),
        timeouts=Timeouts(total=_span(rules.get("timeout", DEFAULT_TIMEOUT), "timeout")),
    )
    problems += problems_of(spec)
    if problems:
        raise InvalidArgument(problems)
    return spec


T = TypeVar("T")


def _chosen(members: Mapping[str, T], word: str, field: str, problems: list[Problem], default: T) -> T:
    found = members.get(word.upper())
    if found is None:
        problems.append(Problem(field, f"{word!r} is none of {', '.join(name.lower() for name in members)}"))
    return default if found is None else found


def _misfire(rules: Rules, problems: list[Problem]) -> Misfire:
    word = rules.get("misfire", "fire_once")
    rule = _chosen(MisfireRule.__members__, word, "misfire", problems, MisfireRule.FIRE_ONCE)
    if (rule is MisfireRule.CATCH_UP) != ("catch_up" in rules):
        problems.append(Problem("catch_up", 'says how many with misfire="catch_up", and only there'))
    return Misfire(rule, rules.get("catch_up", 0))


def _retry(retries: int, backoff: Span) -> Retry:
    attempts = 1 + retries
    if isinstance(backoff, str) and _RANGE in backoff:
        first, _, longest = backoff.partition(_RANGE)
        return Retry(
            max_attempts=attempts,
            strategy=RetryStrategy.EXPONENTIAL,
            initial_delay=_span(first, "backoff"),
            max_delay=_span(longest, "backoff"),
        )
    return Retry(max_attempts=attempts, initial_delay=_span(backoff, "backoff"))


def _span(span: Span, field: str) -> timedelta:
    return span if isinstance(span, timedelta) else parse_duration(span, field)


def _instant(instant: Instant, field: str) -> datetime:
    return instant if isinstance(instant, datetime) else parse_instant(instant, field)
