"""Jobs written down in code: decorators that note what a function is to do and when, and leave the function alone.

Nothing here reads or writes anything but memory; what cannot work is refused at the line that says it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, Literal, TypedDict, TypeVar, Unpack, cast

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
from ksana.periodic.chain_definitions import ChainDefinition, http_config
from ksana.periodic.handlers import DEFAULT_CONCURRENCY, Handler, handler_of, refuse_doubles

F = TypeVar("F", bound=Callable[..., Any])
Span = str | timedelta
Instant = str | datetime

_NONE: Final = timedelta(0)
_RANGE: Final = ".."


class Policies(TypedDict, total=False):
    """What every job takes besides the what and the when.

    `backoff` is a span between tries, or two of them, `"5s..60s"`, for one that doubles. `catch_up` is how many missed
    slots the misfire rule of that name makes up for.
    """

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


class Rules(Policies, total=False):
    """What every decorator takes besides the when. `name` is the function's own unless said; `args` and `kwargs` are
    what it is called with."""

    name: str
    args: Sequence[Any]
    kwargs: Mapping[str, Any]


class When(TypedDict, total=False):
    """The when of what is no function: at most one of cron, every and at."""

    cron: str
    tz: str
    every: Span
    at: Instant
    jitter: Span


class ChainRules(When, Policies, total=False):
    """What a chain takes."""


class HttpRules(When, Policies, total=False):
    """What a call of a URL takes."""

    json: Any
    headers: Mapping[str, str]


class Definition(msgspec.Struct, frozen=True):
    """What code says of a job, and the functions it calls by the names workers know. An interval counts from 1970 until
    its job is made."""

    name: str
    spec: JobSpec
    functions: Mapping[str, Callable[..., Any]] = {}


class Definitions:
    """The jobs of a program, or of one of its modules."""

    def __init__(self) -> None:
        self._own: dict[str, Callable[[], Definition]] = {}
        self._handlers: list[Handler] = []
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

    def http(self, name: str, call: str, *, callback: Span | None = None, **said: Unpack[HttpRules]) -> None:
        """Call a URL: `"POST https://svc.internal/sync"`. With `callback`, a run ends when the other side says so, and
        no later than that."""
        schedule, rules = _schedule(said), _rules(said)
        config = http_config(call, said.get("json"), said.get("headers"), is_async=callback is not None)
        spec = _spec(name, schedule, rules, TargetSpec("http", config))
        if callback is not None:
            timeouts = msgspec.structs.replace(spec.timeouts, callback=_span(callback, "callback"))
            spec = msgspec.structs.replace(spec, timeouts=timeouts)
        self._note(name, Definition(name, spec))

    def chain(
        self,
        name: str,
        *,
        params: Mapping[str, Any] | None = None,
        max_parallel: int | None = None,
        fail_fast: bool = False,
        **said: Unpack[ChainRules],
    ) -> ChainDefinition:
        """A chain of steps, each noted by `@chain.node`. Without a schedule it runs when somebody starts it."""
        chain = ChainDefinition(name, params=params, max_parallel=max_parallel, fail_fast=fail_fast)
        schedule, rules = _schedule(said), _rules(said)
        rules.setdefault("overlap", "parallel")

        def defined() -> Definition:
            return Definition(name, _spec(name, schedule, rules, TargetSpec("chain", chain.dag())), chain.functions)

        self._enter(name, defined)
        return chain

    def handler(
        self, name: str, *, queue: str | None = None, concurrency: int = DEFAULT_CONCURRENCY
    ) -> Callable[[F], F]:
        """Have the function see to items that workers pull: those about objects (`"cognition.revalidate"`), those of a
        queue, or those of one type in a `queue`. It is given the Item, on at most `concurrency` of them at once."""

        def decorate(function: F) -> F:
            handler = handler_of(name, queue, concurrency, function)
            refuse_doubles([*self._handlers, handler])
            self._handlers.append(handler)
            return function

        return decorate

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
            for name, defined in each._own.items():
                if name in found:
                    raise AlreadyExists(f"two jobs are called {name!r}; give one of them another with name=…")
                found[name] = defined()
        return found

    @property
    def handlers(self) -> list[Handler]:
        """All handlers, those of included modules among them. AlreadyExists if two want the same items."""
        found = [handler for each in self._family() for handler in each._handlers]
        refuse_doubles(found)
        return found

    @property
    def functions(self) -> dict[str, Callable[..., Any]]:
        """What the workers call, by name."""
        return {
            name: function
            for definition in self.definitions.values()
            for name, function in definition.functions.items()
        }

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
            args, kwargs = list(rules.get("args", ())), dict(rules.get("kwargs", {}))
            target = TargetSpec("python", {"function": name, "args": args, "kwargs": kwargs})
            self._note(name, Definition(name, _spec(name, schedule, rules, target), {name: function}))
            return function

        return decorate

    def _note(self, name: str, definition: Definition) -> None:
        self._enter(name, lambda: definition)

    def _enter(self, name: str, defined: Callable[[], Definition]) -> None:
        if name in self._own:
            raise AlreadyExists(f"two jobs are called {name!r}; give one of them another with name=…")
        self._own[name] = defined


def _schedule(said: Mapping[str, Any]) -> Schedule | None:
    """The one schedule that is said by a word, if any is."""
    words = [word for word in ("cron", "every", "at") if said.get(word) is not None]
    if len(words) > 1:
        raise InvalidArgument.of(words[1], f"there is a {words[0]} already; a job has one schedule")
    jitter = _span(said.get("jitter", _NONE), "jitter")
    match words:
        case ["cron"]:
            return CronSchedule(said["cron"], said.get("tz", "UTC"), jitter=jitter)
        case ["every"]:
            return Every(_span(said["every"], "every"), EPOCH, jitter=jitter)
        case ["at"]:
            return Once(_instant(said["at"], "at"))
        case _:
            return None


def _rules(said: Mapping[str, Any]) -> Rules:
    """What is said besides the when."""
    others = HttpRules.__optional_keys__ - Policies.__optional_keys__
    return cast(Rules, {name: value for name, value in said.items() if name not in others})


def _spec(name: str, schedule: Schedule | None, rules: Rules, target: TargetSpec) -> JobSpec:
    problems: list[Problem] = []
    if unknown := rules.keys() - Rules.__optional_keys__:
        problems += [Problem(field, "is nothing a job knows") for field in sorted(unknown)]
    spec = JobSpec(
        name=name,
        ref=name,
        target=target,
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
