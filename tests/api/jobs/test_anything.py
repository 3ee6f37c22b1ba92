"""Whatever a request says of a timer, it is kept as it is shown or refused by the name of a field."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.api.v2.test_anything import (
    Caller,
    anything,
    caller,
    durations,
    expressions,
    few,
    instants,
    numbers,
    words,
    zones,
)

__all__ = ["caller"]

urls = st.one_of(words, st.sampled_from(["https://a.test/", "http://[::1", "http://a:99999", "http://ü.test/ü?ü#ü"]))
schedules = st.one_of(
    st.fixed_dictionaries({"kind": st.just("once"), "run_at": instants}, optional={"jitter": durations}),
    st.fixed_dictionaries(
        {"kind": st.just("every"), "every": durations}, optional={"start_at": instants, "jitter": durations}
    ),
    st.fixed_dictionaries(
        {"kind": st.just("cron"), "expr": expressions},
        optional={"timezone": zones, "start_at": instants, "jitter": durations},
    ),
    st.fixed_dictionaries({}, optional={"run_at": instants, "every": durations, "jitter": durations, "kind": words}),
    anything,
)
calls = st.one_of(
    st.fixed_dictionaries({}, optional={"url": urls, "method": words, "headers": anything, "body": words}), anything
)
optional = {
    "id": words,
    "name": words,
    "enabled": st.booleans(),
    "type": st.one_of(st.just("http"), words),
    "timeout": durations,
    "max_retries": numbers,
    "retry_backoff": durations,
}
new_jobs = st.fixed_dictionaries({"http": calls, "schedule": schedules}, optional=optional)
good_jobs = st.fixed_dictionaries(
    {"http": st.just({"url": "https://a.test/"}), "schedule": schedules}, optional=optional
)
changes = st.fixed_dictionaries({}, optional={"http": calls, "schedule": schedules, **optional})
GOOD = {"http": {"url": "https://a.test/"}, "schedule": {"kind": "every", "every": "90s"}}


@few
@given(body=st.one_of(good_jobs, new_jobs))
def test_a_new_timer_is_kept_as_it_is_shown_or_refused(caller: Caller, body: Any) -> None:
    """K-25, K-75"""
    made = caller.done_or_refused("POST", "/jobs", body)
    if made is not None:
        path = f"/jobs/{made['id']}"
        assert caller.call("GET", path) == (200, made)
        # What is shown, said again, changes nothing.
        assert caller.call("PATCH", path, made) == (200, made)
        assert caller.call("DELETE", path)[0] == 204


@few
@given(body=changes)
def test_a_change_of_a_timer_is_kept_as_it_is_shown_or_refused(caller: Caller, body: Any) -> None:
    """K-69, K-75"""
    _, job = caller.call("POST", "/jobs", GOOD)
    path = f"/jobs/{job['id']}"
    changed = caller.done_or_refused("PATCH", path, body)
    assert caller.call("GET", path) == (200, changed or job)
