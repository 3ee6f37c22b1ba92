"""A timer and its entry: whatever a job says, its entry says the same."""

import json
from datetime import timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ksana.domain.jobs import Job, TargetSpec
from ksana.domain.policies import (
    Misfire,
    MisfireRule,
    OnUncertain,
    Overlap,
    OverlapRule,
    Priority,
    Retry,
    RetryStrategy,
    Timeouts,
)
from ksana.domain.schedules import CronSchedule, Every, Once
from ksana.domain.standing import Standing
from ksana.stores.json.entries import Circumstances, read_entry
from ksana.stores.json.format import core_of, entry, is_documented, shown
from tests.stores.builders import NOW

TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20)
NAMES = st.text('abcxyz-019 é🚀"\\/', min_size=1, max_size=20).filter(str.strip)
INSTANTS = st.integers(-(10**15), 10**15).map(lambda n: NOW + timedelta(microseconds=n))
MICROS = st.integers(1, 10**11).map(lambda n: timedelta(microseconds=n))
MAYBE = st.none() | INSTANTS
SCALARS = st.none() | st.booleans() | st.integers() | TEXT


@st.composite
def schedules(draw: Any) -> Once | Every | CronSchedule:
    kind = draw(st.sampled_from(["once", "every", "cron"]))
    if kind == "once":
        return Once(draw(INSTANTS))
    start_at = draw(MAYBE)
    end_at = None if draw(st.booleans()) else (start_at or NOW) + draw(MICROS)
    if kind == "cron":
        return CronSchedule("*/5 2 * * *", "Asia/Shanghai", start_at, end_at, draw(MICROS))
    every = timedelta(seconds=1) + draw(MICROS)
    return Every(every, draw(INSTANTS), start_at, end_at, draw(st.sampled_from([timedelta(0), every / 2])))


@st.composite
def timers(draw: Any) -> Job:
    slot_at = draw(MAYBE)
    config: dict[str, Any] = {
        "method": draw(st.sampled_from(["GET", "POST"])),
        "url": draw(st.sampled_from(["http://x", "https://example.com:8443/a?b={{run_id}}#c"])),
        "headers": draw(st.dictionaries(NAMES, TEXT, max_size=3)),
    }
    config |= draw(st.sampled_from([{}, {"body": ""}, {"body": '{"a": "é\\n🚀"}'}]))
    config |= draw(st.sampled_from([{}, {"mode": "sync"}, {"mode": "async", "more": [1, None, 2.5]}]))
    return Job(
        id=draw(st.integers(1, 2**53)),
        surface="jobs",
        ref=draw(NAMES),
        name=draw(NAMES),
        enabled=draw(st.booleans()),
        target=TargetSpec("http", config),
        schedule=draw(schedules()),
        next_slot_at=slot_at,
        next_fire_at=None if slot_at is None else slot_at + draw(st.sampled_from([timedelta(0), timedelta(seconds=1)])),
        retry=Retry(
            draw(st.integers(1, 1000)),
            draw(st.sampled_from(RetryStrategy)),
            draw(MICROS),
            draw(st.sampled_from([1.0, 2.0, 1.5])),
            draw(MICROS),
        ),
        overlap=Overlap(draw(st.sampled_from(OverlapRule)), draw(st.integers(0, 9))),
        misfire=Misfire(draw(st.sampled_from(MisfireRule)), draw(st.integers(0, 9))),
        timeouts=Timeouts(
            draw(st.sampled_from([timedelta(seconds=10), timedelta(seconds=1, microseconds=7)])),
            draw(st.sampled_from([timedelta(seconds=5), timedelta(seconds=2)])),
        ),
        on_uncertain=draw(st.none() | st.sampled_from(OnUncertain)),
        queue=draw(st.sampled_from(["default", "slow"])),
        priority=draw(st.sampled_from(Priority)),
        description=draw(TEXT),
        tags=tuple(draw(st.lists(NAMES, max_size=3))),
        extras=draw(st.sampled_from([{}, {"timeout": "10000ms", "every": "1.5h"}, {"jitter": "0h", "note": [1]}])),
        version=draw(st.integers(1, 9)),
        awaits_callback=draw(st.booleans()),
        paused_at=draw(MAYBE),
        created_at=draw(INSTANTS),
        updated_at=draw(INSTANTS),
    )


def no_new_id() -> int:
    raise AssertionError("an entry that we wrote has its id")


def no_jitter() -> float:
    raise AssertionError("a cursor that we wrote stays where it is")


@given(timers())
def test_any_timer_comes_back_from_its_entry_as_it_was(job: Job) -> None:
    assert is_documented(job)
    standing = Standing(next_run_at=job.next_fire_at)
    written = json.loads(entry(shown(job, standing), core_of(job)))
    assert read_entry(written, Circumstances(NOW, no_new_id, no_jitter)) == (job, "")


@given(SCALARS | st.dictionaries(TEXT | st.sampled_from(["id", "http", "schedule", "core"]), SCALARS, max_size=4))
def test_whatever_stands_in_an_entry_becomes_a_job_or_a_disabled_one_with_the_reason(raw: Any) -> None:
    job, problem = read_entry(raw, Circumstances(NOW, lambda: 7, lambda: 0.5))
    assert problem
    assert (job.id, job.enabled, job.next_fire_at) == (7, False, None)


FIELDS = ["id", "name", "enabled", "type", "http", "schedule", "timeout", "max_retries", "retry_backoff", "core"]


@given(timers(), st.sampled_from([*FIELDS, "next_run_at"]), SCALARS)
def test_one_field_of_nonsense_never_breaks_the_reading(job: Job, field: str, nonsense: Any) -> None:
    written = json.loads(entry(shown(job, Standing()), core_of(job)))
    read, problem = read_entry({**written, field: nonsense}, Circumstances(NOW, lambda: 7, lambda: 0.5))
    assert not problem or not read.enabled
