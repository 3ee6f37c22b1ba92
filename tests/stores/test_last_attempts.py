"""The newest attempts of many runs at once, as a list of runs shows them."""

import msgspec

from ksana.domain.outcomes import Exchange, Verdict
from ksana.domain.ports import Store
from ksana.domain.runs import Attempt, LastAttempt, Run
from ksana.domain.states import Event
from tests.stores.builders import NOW, a_job, a_move, a_run, an_attempt, an_exchange, claim, get, put


async def claimed(store: Store) -> Run:
    [one] = await claim(store)
    return one.run


async def tried(store: Store, event: Event, verdict: Verdict, exchange: Exchange | None = None) -> Attempt:
    """The next attempt of the one run that is due."""
    run = await claimed(store)
    attempt = an_attempt(run, verdict=verdict, exchange=exchange)
    said = {"due_at": NOW} if event is Event.RETRY else {}
    await store.turn([a_move(run, event, attempt=attempt, **said)])
    return attempt


async def test_the_newest_attempt_of_each_run_is_found(store: Store) -> None:
    await store.add_jobs([a_job(1)])
    newest = {}
    # The second one has ended by its last attempt, the third is at another one.
    tries = {1: [Event.SUCCEED], 2: [Event.RETRY, Event.RETRY, Event.FAIL], 3: [Event.RETRY, Event.RETRY]}
    for run_id, events in tries.items():
        await put(store, a_run(run_id))
        for event in events:
            exchange = an_exchange(request_body=event.value.encode(), response_body=b"\xff")
            newest[run_id] = LastAttempt(await tried(store, event, Verdict.RETRY, exchange))
        if run_id == 3:
            await claimed(store)
    await put(store, a_run(4))
    assert await store.last_attempts([1, 2, 3, 4, 404]) == newest
    assert await store.last_attempts([]) == {}
    for run_id, last in newest.items():
        assert (await store.attempts(run_id))[-1] == last.attempt


async def test_a_run_that_goes_on_after_its_end_has_a_newer_attempt(store: Store) -> None:
    await store.add_jobs([a_job(1)])
    await put(store, a_run(1))
    first = await tried(store, Event.FAIL, Verdict.FAIL)
    await store.turn([a_move(await get(store, 1), Event.RERUN, due_at=NOW)])
    assert await store.last_attempts([1]) == {1: LastAttempt(first)}
    second = await tried(store, Event.SUCCEED, Verdict.SUCCESS)
    assert await store.last_attempts([1]) == {1: LastAttempt(second)}


async def test_bodies_beyond_a_size_are_left_out_and_that_is_said(store: Store) -> None:
    """C-70: told in the run's own row, or in a row of its own."""
    await store.add_jobs([a_job(1)])
    sent = an_exchange(request_headers={"a": "b"}, request_body=b"\xff" * 40, response_body=b"y" * 60, truncated=True)
    for run_id, event in ((1, Event.SUCCEED), (2, Event.RETRY)):
        await put(store, a_run(run_id))
        attempt = await tried(store, event, Verdict.SUCCESS, sent)
        without = msgspec.structs.replace(sent, request_body=b"", response_body=b"")
        left_out = LastAttempt(msgspec.structs.replace(attempt, exchange=without), bodies_omitted=True)
        assert await store.last_attempts([run_id], 100) == {run_id: LastAttempt(attempt)}
        assert await store.last_attempts([run_id], 99) == {run_id: left_out}


async def test_an_attempt_that_sent_nothing_leaves_nothing_out(store: Store) -> None:
    await store.add_jobs([a_job(1)])
    await put(store, a_run(1), a_run(2))
    for run in [one.run for one in await claim(store)]:
        exchange = an_exchange() if run.id == 2 else None
        await store.turn([a_move(run, Event.SUCCEED, attempt=an_attempt(run, exchange=exchange))])
    assert [last.bodies_omitted for last in (await store.last_attempts([1, 2], 0)).values()] == [False, False]
