"""Whatever a request says, it is done or refused by the name of a field: never a fault of ours, never half done."""

import tempfile
from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.api.v2.world import World, open_world
from tests.services.loop import LoopThread

numbers = st.one_of(st.integers(-3, 3), st.sampled_from([2**31, 2**63 - 1, -(2**63), 2**63, 10**30, 0.5, 1e308]))
words = st.one_of(
    st.text(max_size=8), st.sampled_from(["", " ", "\u0000", "a" * 129, "😀", "\u202e", "null", "{{run_id}}"])
)
instants = st.one_of(
    words,
    st.sampled_from(
        [
            "2030-01-01T12:00:30Z",
            "0001-01-01T00:00:00Z",
            "0001-01-01T00:00:00+14:00",
            "1969-12-31T23:59:59.999999Z",
            "9999-12-31T23:59:59.999999Z",
            "9999-12-31T23:59:59-14:00",
            "2016-12-31T23:59:60Z",
        ]
    ),
)
durations = st.one_of(words, st.sampled_from(["0s", "-1s", "1ms", "100ms", "1s", "1h", "87600h", "999999999h", "1e9s"]))
zones = st.one_of(words, st.sampled_from(["UTC", "Asia/Kathmandu", "+14:00", "../../etc/passwd", "Etc/GMT+12"]))
expressions = st.one_of(
    words, st.sampled_from(["* * * * *", "0 0 29 2 *", "0 0 L * *", "0 0 1 1 1#5", "@yearly", "@every 1s", "@every 0s"])
)
bounds = {"start_at": instants, "end_at": instants, "jitter": durations}
schedules = st.one_of(
    st.fixed_dictionaries({"kind": st.just("once"), "run_at": instants}),
    st.fixed_dictionaries({"kind": st.just("every"), "every": durations}, optional=bounds),
    st.fixed_dictionaries({"kind": st.just("cron"), "expr": expressions}, optional={"timezone": zones, **bounds}),
)
anything = st.recursive(
    st.one_of(st.none(), st.booleans(), numbers, words),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(words, inner, max_size=3)),
    max_leaves=5,
)
targets = st.one_of(
    st.fixed_dictionaries({"kind": st.sampled_from(["echo"]), "config": st.fixed_dictionaries({"message": anything})}),
    st.fixed_dictionaries({"kind": st.just("sleep"), "config": st.fixed_dictionaries({"for": durations})}),
    st.fixed_dictionaries(
        {
            "kind": st.just("http"),
            "config": st.fixed_dictionaries(
                {"url": st.one_of(words, st.sampled_from(["http://[::1", "http://a:99999", "http://ü.test/ü?ü#ü"]))},
                optional={"headers": anything, "json": anything, "body": words, "mode": words, "method": words},
            ),
        }
    ),
    st.fixed_dictionaries({"kind": words, "config": anything}),
)
policies = {
    "description": words,
    "tags": st.lists(words, max_size=3),
    "enabled": st.booleans(),
    "queue": words,
    "priority": st.sampled_from(["low", "high", "?"]),
    "schedule": st.one_of(st.none(), schedules),
    "retry": st.fixed_dictionaries(
        {},
        optional={"max_attempts": numbers, "initial_delay": durations, "multiplier": numbers, "max_delay": durations},
    ),
    "overlap": st.fixed_dictionaries({}, optional={"max_concurrency": numbers}),
    "misfire": st.fixed_dictionaries({}, optional={"rule": st.just("catch_up"), "limit": numbers}),
    "timeouts": st.fixed_dictionaries({}, optional={"total": durations, "connect": durations, "callback": durations}),
}
names = st.one_of(st.just("ok"), words)
new_jobs = st.fixed_dictionaries({"name": names, "target": targets}, optional=policies)
good_jobs = st.fixed_dictionaries({"name": st.just("ok"), "target": st.just({"kind": "noop"})}, optional=policies)
changes = st.fixed_dictionaries({}, optional={"name": names, "target": targets, **policies})

few = settings(
    max_examples=60,
    database=None,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)


class Caller:
    """The world on a loop of its own, so that examples can be drawn while it stands."""

    def __init__(self, world: World, loop: LoopThread) -> None:
        self._world = world
        self._loop = loop

    def call(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        answer = self._loop.run(self._world.call(method, path, json_body=body))
        return answer.status, answer.json() if answer.body else None

    def done_or_refused(self, method: str, path: str, body: Any) -> Any:
        """The answer to a request, or None if it was refused as it should be."""
        status, seen = self.call(method, path, body)
        if status in (200, 201):
            return seen
        assert status == 400, seen
        assert seen["code"] in ("INVALID_ARGUMENT", "INVALID_JSON"), seen
        assert seen["code"] == "INVALID_JSON" or seen.get("problems"), seen
        return None


@pytest.fixture(scope="module")
def caller() -> Iterator[Caller]:
    with tempfile.TemporaryDirectory() as folder, LoopThread() as loop:
        stack = AsyncExitStack()
        world = loop.run(stack.enter_async_context(open_world(Path(folder) / "ksana.db")))
        yield Caller(world, loop)
        loop.run(stack.aclose())


@few
@given(body=st.one_of(good_jobs, new_jobs))
def test_a_new_job_is_kept_as_it_is_shown_or_refused(caller: Caller, body: Any) -> None:
    made = caller.done_or_refused("POST", "/api/v2/jobs", body)
    if made is not None:
        assert caller.call("GET", f"/api/v2/jobs/{made['id']}") == (200, made)
        assert caller.call("DELETE", f"/api/v2/jobs/{made['id']}")[0] == 204


@few
@given(body=changes)
def test_a_change_is_kept_as_it_is_shown_or_refused(caller: Caller, body: Any) -> None:
    _, job = caller.call("POST", "/api/v2/jobs", {"name": "ok", "target": {"kind": "noop"}})
    path = f"/api/v2/jobs/{job['id']}"
    changed = caller.done_or_refused("PATCH", path, body)
    assert caller.call("GET", path) == (200, changed or job)


@few
@given(schedule=schedules, from_at=instants)
def test_a_preview_shows_rising_instants_or_is_refused(caller: Caller, schedule: Any, from_at: str) -> None:
    body = {"schedule": schedule, "from_at": from_at, "count": 3}
    shown = caller.done_or_refused("POST", "/api/v2/schedules/preview", body)
    if shown is not None:
        assert shown["next"] == sorted(set(shown["next"]))


@few
@given(given_input=anything)
def test_the_input_of_a_run_comes_back_as_it_was_given(caller: Caller, given_input: Any) -> None:
    _, job = caller.call("POST", "/api/v2/jobs", {"name": "ok", "target": {"kind": "noop"}})
    run = caller.done_or_refused("POST", f"/api/v2/jobs/{job['id']}/runs", {"input": given_input})
    if run is not None:
        assert run["input"] == given_input
        assert caller.call("GET", f"/api/v2/runs/{run['id']}") == (200, run)
