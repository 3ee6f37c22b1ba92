"""The queue against the model: any order of what senders, workers and operators may do, on every store."""

import asyncio
import os
from collections.abc import Coroutine
from datetime import timedelta
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from ksana.domain.errors import InvalidState, StaleLease
from ksana.domain.items import Item, NewItem, lease_token, subject_of_key
from ksana.domain.limits import Rate
from ksana.domain.policies import Priority
from ksana.domain.runs import Run
from ksana.domain.states import State
from ksana.engine.auditing import Actor
from tests.engine.conftest import Worlds
from tests.engine.queue_model import QueueModel, Thing
from tests.kit.world import World

T = TypeVar("T")

EXPLORE = os.environ.get("KSANA_TEST_EXPLORE") == "1"
LEASE = timedelta(seconds=20)
STATES = {
    State.SCHEDULED: "queued",
    State.RETRYING: "queued",
    State.RUNNING: "held",
    State.SUCCESS: "done",
    State.FAILED: "failed",
    State.DEAD_LETTER: "dead",
}


class QueueMachine(RuleBasedStateMachine):
    """Leads one queue and its model through the same life."""

    world: World
    loop: asyncio.AbstractEventLoop
    things = Bundle("things")

    def go(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return self.loop.run_until_complete(coroutine)

    @initialize()
    def begin(self) -> None:
        self.queue = self.world.main.engine.queue
        self.name = f"q{self.go(self.world.store.reserve_ids('run', 1))[0]}"
        self.model = QueueModel()

    @rule(
        target=things,
        after=st.integers(-20, 40),
        priority=st.sampled_from(list(Priority)),
        attempts=st.integers(1, 3),
        key=st.sampled_from([None, "a", "b"]),
    )
    def enqueue(self, after: int, priority: Priority, attempts: int, key: str | None) -> int:
        due_at = self.world.now + timedelta(seconds=after)
        subject = None if key is None else subject_of_key(key)
        new = NewItem(queue=self.name, item=Item(None, attempts), due_at=due_at, priority=priority, subject=subject)
        [(run, is_new)] = self.go(self.queue.enqueue([new]))
        assert isinstance(run, Run)
        assert is_new
        self.model.things[run.id] = Thing(run.id, due_at, priority.value, attempts, key)
        return run.id

    @rule(limit=st.integers(1, 4), holder=st.sampled_from(["w1", "w2"]))
    def pull(self, limit: int, holder: str) -> None:
        handed = self.go(self.queue.pull(self.name, holder, limit=limit, lease=LEASE))
        assert [run.id for run in handed] == self.model.pull(self.world.now, limit, holder, LEASE)
        for run in handed:
            assert (lease_token(run), run.holder) == (self.model.things[run.id].token, holder)

    @rule(id=things, is_late=st.booleans())
    def ack(self, id: int, is_late: bool) -> None:
        one = self.model.things[id]
        token = f"{id}.{one.attempt - 1}" if is_late else one.token
        if one.state == "done" and not is_late:
            assert self.go(self.queue.ack(id, token)).state is State.SUCCESS
        elif one.state != "held" or is_late:
            with pytest.raises(StaleLease):
                self.go(self.queue.ack(id, token))
        else:
            self.go(self.queue.ack(id, token))
            one.state, one.until = "done", None

    @rule(id=things, delay=st.integers(0, 20), is_final=st.booleans())
    def fail(self, id: int, delay: int, is_final: bool) -> None:
        one = self.model.things[id]
        said: dict[str, Any] = {"delay": timedelta(seconds=delay), "is_final": is_final}
        if one.state != "held":
            with pytest.raises(InvalidState):
                self.go(self.queue.fail(id, "no", **said))
            return
        self.go(self.queue.fail(id, "no", token=one.token, **said))
        if is_final:
            one.state, one.until, one.failures = "failed", None, one.failures + 1
        else:
            self.model.failed(one, self.world.now, timedelta(seconds=delay))

    @rule(id=things)
    def release(self, id: int) -> None:
        one = self.model.things[id]
        if one.state != "held":
            with pytest.raises(StaleLease):
                self.go(self.queue.release(id, one.token))
            return
        self.go(self.queue.release(id, one.token))
        one.state, one.until = "queued", None

    @rule(id=things)
    def heartbeat(self, id: int) -> None:
        one = self.model.things[id]
        if one.state == "held":
            self.go(self.queue.extend(id, LEASE, one.token))
            one.until = self.world.now + LEASE

    @rule(id=things)
    def redrive(self, id: int) -> None:
        one = self.model.things[id]
        if one.state == "dead":
            self.go(self.queue.redrive(id))
            one.state, one.failures, one.due_at = "queued", 0, self.world.now

    @rule(seconds=st.sampled_from([1, 5, 16]))
    def time_passes(self, seconds: int) -> None:
        """In steps, because what lapses comes due again when that is noticed."""
        for _ in range(seconds):
            self.go(self.world.advance(timedelta(seconds=1)))
            self.model.lapse(self.world.now)

    @rule(
        is_paused=st.booleans(),
        concurrency=st.sampled_from([None, 1, 3]),
        key_concurrency=st.sampled_from([None, 1, 2]),
        rate=st.sampled_from([None, Rate(2, timedelta(seconds=10))]),
    )
    def limit(self, is_paused: bool, concurrency: int | None, key_concurrency: int | None, rate: Rate | None) -> None:
        said = {"concurrency": concurrency, "key_concurrency": key_concurrency, "rate": rate}
        governor = self.world.main.engine.governor
        self.go(governor.set_queue(self.name, {"is_paused": is_paused, **said}, Actor("t")))
        self.model.is_paused = is_paused
        self.model.concurrency, self.model.key_concurrency, self.model.rate = concurrency, key_concurrency, rate

    @invariant()
    def everything_is_where_it_should_be(self) -> None:
        if not hasattr(self, "model"):
            return
        runs = {run.id: run for run in self.go(self.world.store.get_runs(self.model.things))}
        for id, one in self.model.things.items():
            run = runs[id]
            assert (STATES[run.state], run.attempt, run.failures) == (one.state, one.attempt, one.failures)
            if one.state in ("queued", "held"):
                assert (run.due_at, run.deadline_at) == (one.due_at, one.until)


@pytest.mark.parametrize("kind", ["sqlite", "postgres", "mysql", "json", "redis"])
def test_the_queue_does_what_its_model_does(kind: str, request: pytest.FixtureRequest) -> None:
    loop = asyncio.new_event_loop()
    worlds = Worlds(request.getfixturevalue(f"{kind}_world_url"))
    # Lives follow each other in one world, each with a queue of its own.
    world = loop.run_until_complete(worlds.create())
    machine = type("Machine", (QueueMachine,), {"world": world, "loop": loop})
    lives = (6 if kind in ("sqlite", "json") else 2) * (8 if EXPLORE else 1)
    try:
        run_state_machine_as_test(
            machine,
            settings=settings(
                max_examples=lives,
                stateful_step_count=25,
                deadline=None,
                database=None,
                derandomize=not EXPLORE,
                phases=(Phase.generate, Phase.shrink) if EXPLORE else (Phase.generate,),
                suppress_health_check=list(HealthCheck),
            ),
        )
    finally:
        loop.run_until_complete(worlds.close())
        loop.close()
