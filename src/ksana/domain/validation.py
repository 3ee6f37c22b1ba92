"""What makes a job acceptable, whichever surface it came through. Every problem is named, not only the first."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from ksana.domain.errors import InvalidArgument, Problem
from ksana.domain.jobs import JobSpec
from ksana.domain.moves import LONGEST_WAIT
from ksana.domain.policies import MisfireRule, Retry
from ksana.domain.schedules import validate as validate_schedule

NAME_LENGTH = 128
REF_LENGTH = 128
DESCRIPTION_LENGTH = 4096
TAGS = 32
TAG_LENGTH = 64
QUEUE_LENGTH = 64
CATCH_UP = 1000
ATTEMPTS = 1000
LONGEST_TIMEOUT = timedelta(days=1)


def problems_of(spec: JobSpec) -> list[Problem]:
    """Everything wrong with a job, its target's config aside."""
    found = [*_texts(spec), *_policies(spec), *_retry(spec.retry), *_timeouts(spec)]
    if spec.schedule is not None:
        try:
            validate_schedule(spec.schedule)
        except InvalidArgument as error:
            found += error.problems
    return found


def _texts(spec: JobSpec) -> Iterator[Problem]:
    if not spec.name.strip():
        yield Problem("name", "give the job a name")
    yield from _length("name", spec.name, NAME_LENGTH)
    yield from _length("ref", spec.ref, REF_LENGTH)
    yield from _length("description", spec.description, DESCRIPTION_LENGTH)
    yield from _length("queue", spec.queue, QUEUE_LENGTH)
    if not spec.queue or not spec.queue.isascii() or not spec.queue.isprintable():
        yield Problem("queue", "must be printable ASCII")
    if len(spec.tags) > TAGS:
        yield Problem("tags", f"at most {TAGS} tags")
    for i, tag in enumerate(spec.tags):
        if not tag.strip():
            yield Problem(f"tags[{i}]", "must not be empty")
        yield from _length(f"tags[{i}]", tag, TAG_LENGTH)


def _length(field: str, text: str, limit: int) -> Iterator[Problem]:
    if len(text) > limit:
        yield Problem(field, f"at most {limit} characters, not {len(text)}")
    if "\x00" in text:
        yield Problem(field, "must not contain NUL")


def _policies(spec: JobSpec) -> Iterator[Problem]:
    if spec.overlap.max_concurrency < 0:
        yield Problem("overlap.max_concurrency", "must be 0 (always full) or more")
    if spec.overlap.max_concurrency > 2**31:
        yield Problem("overlap.max_concurrency", "is beyond reason; use the rule parallel for no limit")
    if spec.misfire.rule is MisfireRule.CATCH_UP and not 0 <= spec.misfire.limit <= CATCH_UP:
        yield Problem("misfire.limit", f"must be between 0 and {CATCH_UP}")


def _retry(retry: Retry) -> Iterator[Problem]:
    if not 1 <= retry.max_attempts <= ATTEMPTS:
        yield Problem("retry.max_attempts", f"must be between 1 and {ATTEMPTS}")
    if not 1.0 <= retry.multiplier <= 100.0:
        yield Problem("retry.multiplier", "must be between 1 and 100")
    for field, span in (("initial_delay", retry.initial_delay), ("max_delay", retry.max_delay)):
        if not timedelta(0) <= span <= LONGEST_WAIT:
            yield Problem(f"retry.{field}", f"must be between 0s and {LONGEST_WAIT.days} days")


def _timeouts(spec: JobSpec) -> Iterator[Problem]:
    for field, span, longest in (
        ("total", spec.timeouts.total, LONGEST_TIMEOUT),
        ("connect", spec.timeouts.connect, LONGEST_TIMEOUT),
        ("callback", spec.timeouts.callback, LONGEST_WAIT),
    ):
        if not timedelta(0) < span <= longest:
            yield Problem(f"timeouts.{field}", f"must be more than 0s and at most {longest.days} days")
