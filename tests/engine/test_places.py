"""The places of a node: workers take one run after the other, and must carry nothing from one to the next."""

import asyncio
from collections.abc import Awaitable, Callable
from contextvars import ContextVar

from ksana.domain.claims import Claimed
from ksana.domain.outcomes import SUCCESS, Outcome, Verdict
from ksana.domain.ports import Begun
from ksana.domain.runs import Run
from ksana.engine.clock import SystemClock
from ksana.engine.places import Places
from tests.stores.builders import a_run

Attempt = Callable[[Claimed], Awaitable[Outcome]]


class Desk:
    """Places with an attempt of the test's own, and word of what it saw."""

    def __init__(self, attempt: Attempt, capacity: int = 10) -> None:
        self.workers: list[asyncio.Task[None] | None] = []
        self.begun: list[int] = []

        async def watched(claimed: Claimed) -> Outcome:
            self.workers.append(asyncio.current_task())
            self.begun.append(claimed.run.id)
            return await attempt(claimed)

        self.watched = watched
        self.places = Places(SystemClock(), lambda claimed, now: None, watched, lambda: None, capacity)

    def take(self, *ids: int) -> None:
        self.places.take(Claimed(a_run(n), None) for n in ids)

    @property
    def verdicts(self) -> dict[int, Verdict]:
        return {e.claimed.run.id: e.outcome.verdict for e in self.places.ended if e.outcome is not None}


async def rounds(count: int = 20) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def at_once(claimed: Claimed) -> Outcome:
    return SUCCESS


async def test_runs_whose_target_answers_at_once_need_one_worker() -> None:
    desk = Desk(at_once, capacity=3)
    desk.take(*range(1, 101))
    await rounds()
    assert desk.begun == list(range(1, 101))
    assert len(set(desk.workers)) == 1
    assert desk.places.executing == 0


async def test_what_is_foretold_is_not_attempted_and_keeps_its_place_in_line() -> None:
    desk = Desk(at_once, capacity=1)
    started: list[int] = []
    desk.places = Places(
        SystemClock(),
        lambda claimed, now: started.append(claimed.run.id),
        desk.watched,
        lambda: None,
        1,
        foretell=lambda claimed: Outcome(Verdict.FAIL) if claimed.run.id % 2 else None,
    )
    desk.take(1, 2, 3, 4, 5)
    await rounds()
    assert started == [1, 2, 3, 4, 5]
    assert desk.begun == [2, 4]
    assert desk.verdicts == {n: Verdict.FAIL if n % 2 else Verdict.SUCCESS for n in started}
    assert all(e.started_at == e.ended_at for e in desk.places.ended if e.claimed.run.id % 2)
    assert desk.places.executing == 0 and not desk.places.waiting


async def test_runs_that_wait_are_under_way_together_up_to_the_number_of_places() -> None:
    gate = asyncio.Event()

    async def waits(claimed: Claimed) -> Outcome:
        await gate.wait()
        return SUCCESS

    desk = Desk(waits, capacity=50)
    desk.take(*range(1, 101))
    await rounds()
    assert desk.begun == list(range(1, 51))
    gate.set()
    await rounds()
    assert desk.begun == list(range(1, 101))
    assert len(desk.verdicts) == 100
    # Whoever was there took the rest.
    assert len(set(desk.workers)) == 50


async def test_what_one_attempt_sets_in_its_context_the_next_does_not_see() -> None:
    mark: ContextVar[int] = ContextVar("mark", default=0)
    seen: list[int] = []

    async def marks(claimed: Claimed) -> Outcome:
        seen.append(mark.get())
        mark.set(claimed.run.id)
        await asyncio.sleep(0)
        seen.append(mark.get())
        return SUCCESS

    desk = Desk(marks, capacity=1)
    desk.take(1, 2, 3)
    await rounds()
    assert seen == [0, 1, 0, 2, 0, 3]


async def test_a_worker_whose_attempt_was_cut_off_takes_no_other() -> None:
    """The cancellation may reach it only after its attempt has ended, and would hit the wrong run."""
    answer: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()

    async def first_waits(claimed: Claimed) -> Outcome:
        return await answer if claimed.run.id == 1 else SUCCESS

    desk = Desk(first_waits, capacity=1)
    desk.take(1, 2, 3)
    await rounds()
    answer.set_result(SUCCESS)
    desk.places.let_go((1, a_run(1).epoch))
    await rounds()
    assert desk.verdicts == {2: Verdict.SUCCESS, 3: Verdict.SUCCESS}
    assert desk.workers[0] not in desk.workers[1:]


async def test_a_target_that_cancels_its_own_attempt_is_tried_again_and_spoils_no_other() -> None:
    async def cancels(claimed: Claimed) -> Outcome:
        if claimed.run.id == 1:
            task = asyncio.current_task()
            assert task is not None
            task.cancel()
            await asyncio.sleep(0)
        return SUCCESS

    desk = Desk(cancels, capacity=1)
    desk.take(1, 2)
    await rounds()
    assert desk.verdicts == {1: Verdict.RETRY, 2: Verdict.SUCCESS}


async def test_a_run_let_go_while_it_stands_in_line_is_never_begun() -> None:
    gate = asyncio.Event()

    async def waits(claimed: Claimed) -> Outcome:
        await gate.wait()
        return SUCCESS

    desk = Desk(waits, capacity=1)
    desk.take(1, 2, 3)
    await rounds()
    desk.places.let_go((2, a_run(2).epoch))
    gate.set()
    await rounds()
    assert desk.begun == [1, 3]
    assert desk.places.held == {}


class Telling:
    """Begins attempts that tell by themselves, when the test says so."""

    def __init__(self, capacity: int) -> None:
        self.under_way: dict[int, Callable[[Outcome], None]] = {}
        self.given_up: list[int] = []
        self.places = Places(
            SystemClock(), lambda claimed, now: None, at_once, lambda: None, capacity, begin=self._begin
        )

    def _begin(self, claimed: Claimed, tell: Callable[[Outcome], None]) -> Begun | Outcome | None:
        run_id = claimed.run.id
        if claimed.run.kind == "awaited":
            return None
        if claimed.run.kind == "at once":
            return SUCCESS
        self.under_way[run_id] = tell
        return _Handle(self.given_up, run_id)

    def take(self, *runs: Run) -> None:
        self.places.take(Claimed(run, None) for run in runs)

    @property
    def ended(self) -> list[int]:
        return [execution.claimed.run.id for execution in self.places.ended]


class _Handle:
    def __init__(self, given_up: list[int], run_id: int) -> None:
        self._given_up = given_up
        self._run_id = run_id

    def give_up(self) -> None:
        self._given_up.append(self._run_id)


async def test_attempts_that_tell_by_themselves_fill_the_places_and_free_them() -> None:
    desk = Telling(capacity=2)
    desk.take(*map(a_run, (1, 2, 3, 4)))
    await rounds()
    assert list(desk.under_way) == [1, 2]
    desk.under_way[2](SUCCESS)
    await rounds()
    assert (desk.ended, list(desk.under_way)) == ([2], [1, 2, 3])
    for run_id in (1, 3):
        desk.under_way[run_id](SUCCESS)
    await rounds()
    desk.under_way[4](SUCCESS)
    assert desk.ended == [2, 1, 3, 4]
    assert (desk.places.held, desk.places.executing) == ({}, 0)


async def test_whatever_way_attempts_go_none_holds_another_up() -> None:
    desk = Telling(capacity=3)
    desk.take(a_run(1), a_run(2, kind="at once"), a_run(3, kind="awaited"), a_run(4))
    await rounds()
    assert (desk.ended, list(desk.under_way)) == ([2, 3], [1, 4])


async def test_an_attempt_that_is_let_go_is_given_up_and_what_it_tells_counts_for_nothing() -> None:
    desk = Telling(capacity=1)
    desk.take(a_run(1), a_run(2))
    await rounds()
    desk.places.let_go((1, a_run(1).epoch))
    desk.under_way[1](SUCCESS)
    await rounds()
    assert (desk.given_up, desk.ended, list(desk.under_way)) == ([1], [], [1, 2])


async def test_places_come_to_rest_when_the_last_attempt_has_ended_or_is_let_go() -> None:
    desk = Telling(capacity=2)
    desk.take(a_run(1), a_run(2))
    await rounds()
    resting = asyncio.create_task(desk.places.come_to_rest())
    desk.under_way[1](SUCCESS)
    await rounds()
    assert not resting.done()
    desk.places.let_go((2, a_run(2).epoch))
    await rounds()
    assert resting.done()
    await desk.places.come_to_rest()
