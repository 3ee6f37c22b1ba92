"""Runs that end by a word from outside: the first one counts, and none ends the wait at its deadline."""

import asyncio
from datetime import timedelta

import pytest

from ksana.domain.callbacks import CallbackStatus, Letter, Word
from ksana.domain.errors import InvalidState, NotFound, StoreUnavailable
from ksana.domain.outcomes import Outcome, Verdict
from ksana.domain.policies import Retry
from ksana.domain.runs import Run
from ksana.domain.states import Reason, State
from tests.engine.conftest import Create
from tests.kit.script import RETRY, WAIT, Reply
from tests.kit.world import World


async def waiting(world: World, **said: object) -> Run:
    job = await world.job(callback=True, **said)  # type: ignore[arg-type]
    world.sink.replies(WAIT)
    run = await world.trigger(job)
    assert run.state is State.CALLBACK_PENDING
    return run


async def test_a_callback_ends_the_run(any_world: World) -> None:
    world = any_world
    run = await waiting(world)
    await world.advance("1m")
    run = await world.call_back(run)
    assert (run.state, run.reason, run.ended_at) == (State.SUCCESS, Reason.CALLBACK, world.now)
    await world.advance("1h")
    assert (await world.run(run.id)).state is State.SUCCESS


async def test_a_callback_may_say_that_it_failed(world: World) -> None:
    run = await world.call_back(await waiting(world), succeeded=False, error="out of paper \x00")
    assert run.state is State.FAILED
    assert run.error.startswith("out of paper")


async def test_only_the_first_callback_counts(any_world: World) -> None:
    world = any_world
    run = await waiting(world)
    assert (await world.call_back(run, succeeded=False)).state is State.FAILED
    assert (await world.call_back(run, succeeded=True)).state is State.FAILED


async def test_callbacks_that_race_all_get_the_state_as_it_is(any_world: World) -> None:
    world = any_world
    run = await waiting(world)
    said = await asyncio.gather(
        *(world.main.engine.runs.call_back(run.callback_token or "", Word(succeeded=True)) for _ in range(5))
    )
    assert {one.state for one in said} == {State.SUCCESS}
    assert len({one.epoch for one in said}) == 1


async def test_a_callback_that_overtakes_the_answer_counts(any_world: World) -> None:
    world = any_world
    job = await world.job(callback=True)
    world.sink.replies(Reply(hangs=True))
    run = await world.trigger(job)
    assert run.state is State.RUNNING
    assert (await world.call_back(run)).state is State.SUCCESS
    await world.advance("1h")
    assert ((await world.run(run.id)).state, world.sink.count) == (State.SUCCESS, 1)


async def test_an_answer_after_the_callback_changes_nothing(world: World) -> None:
    job = await world.job(callback=True)
    world.sink.replies(Reply(WAIT, after=timedelta(seconds=2)))
    b = await world.node("b")
    run = await world.trigger(job)
    assert run.callback_token is not None
    other = next(node for node in (b, world.nodes["a"]) if node.id != run.node_id)
    await other.engine.runs.call_back(run.callback_token, Word(succeeded=True))
    await world.advance("10m")
    assert (await world.run(run.id)).state is State.SUCCESS


async def test_a_wait_ends_at_its_deadline(any_world: World) -> None:
    world = any_world
    run = await waiting(world, callback_timeout="5m")
    await world.advance("299s")
    assert (await world.run(run.id)).state is State.CALLBACK_PENDING
    await world.advance("2s")
    ended = await world.run(run.id)
    assert (ended.state, ended.reason) == (State.TIMEOUT, Reason.CALLBACK_TIMEOUT)
    assert (await world.call_back(run)).state is State.TIMEOUT


async def test_a_deadline_survives_a_restart_and_a_wait_is_not_tried_again(world: World) -> None:
    run = await waiting(world, callback_timeout="5m")
    await world.down_for("1m")
    await world.restart()
    assert (await world.run(run.id)).state is State.CALLBACK_PENDING
    await world.down_for("10m")
    assert ((await world.run(run.id)).state, world.sink.count) == (State.TIMEOUT, 1)


async def test_the_token_is_known_before_the_request_is_sent(world: World) -> None:
    run = await waiting(world)
    assert world.sink.deliveries[0].context.callback_token == run.callback_token


async def test_nobody_has_an_unknown_token(world: World) -> None:
    with pytest.raises(NotFound):
        await world.main.engine.runs.call_back("nobody", Word(succeeded=True))


async def test_a_run_that_was_not_sent_awaits_no_callback(world: World) -> None:
    job = await world.job(callback=True, queue="elsewhere")
    run = await world.trigger(job)
    with pytest.raises(InvalidState):
        await world.call_back(run)


async def ledger(world: World, run: Run) -> list[tuple[CallbackStatus, str]]:
    return [(record.status, record.note) for record in await world.store.callbacks(run.id)]


RECEIVED, IGNORED = CallbackStatus.RECEIVED, CallbackStatus.IGNORED


async def test_every_callback_leaves_a_row(any_world: World) -> None:
    """C-74, C-106: the first counts, repeats and contradictions are kept as ignored."""
    world = any_world
    run = await waiting(world)
    for succeeded in (True, True, False):
        assert (await world.call_back(run, succeeded=succeeded)).state is State.SUCCESS
    said = "the run was SUCCESS already"
    assert await ledger(world, run) == [(RECEIVED, ""), (IGNORED, said), (IGNORED, said)]


async def test_of_callbacks_that_race_exactly_one_is_received(any_world: World) -> None:
    """C-18, C-107."""
    world = any_world
    run = await waiting(world)
    b = await world.node("b")
    nodes = [world.main, b] * 3
    said = await asyncio.gather(
        *(
            node.engine.runs.call_back(run.callback_token or "", Word(succeeded=i % 2 == 0))
            for i, node in enumerate(nodes)
        )
    )
    assert len({(one.state, one.epoch) for one in said}) == 1
    statuses = [status for status, _ in await ledger(world, run)]
    assert (statuses.count(RECEIVED), statuses.count(IGNORED)) == (1, 5)


async def test_a_callback_is_kept_as_it_came_but_for_secrets(world: World) -> None:
    """C-74: headers and raw body."""
    run = await waiting(world)
    headers = {"X-From": "billing", "Authorization": "Bearer abc", "Cookie": "a=b", "webhook-signature": "v1,x"}
    letter = Letter(headers, b'{"status":"SUCCESS", "data": {}}')
    await world.main.engine.runs.call_back(run.callback_token or "", Word(succeeded=True), letter)
    [record] = await world.store.callbacks(run.id)
    assert (record.received_at, record.body) == (world.now, letter.body)
    masked = {"authorization": "***", "cookie": "***", "webhook-signature": "***"}
    assert record.headers == {"x-from": "billing", **masked}


async def test_late_callbacks_change_nothing_and_are_kept(world: World) -> None:
    """X-89: after the deadline and after a cancel the answer is the state as it is."""
    late = await waiting(world, callback_timeout="5m")
    canceled = await waiting(world)
    await world.cancel(canceled)
    await world.advance("6m")
    assert (await world.call_back(late)).state is State.TIMEOUT
    assert (await world.call_back(canceled)).state is State.CANCELED
    assert await ledger(world, late) == [(IGNORED, "the run was TIMEOUT already")]
    assert await ledger(world, canceled) == [(IGNORED, "the run was CANCELED already")]


async def test_a_run_that_rests_awaits_no_callback_and_the_row_says_so(world: World) -> None:
    """X-88: SCHEDULED and RETRYING refuse, and keep the callback as ignored; the retry happens."""
    unsent = await world.trigger(await world.job(callback=True, queue="elsewhere"))
    world.sink.replies(RETRY, WAIT)
    resting = await world.trigger(await world.job(callback=True, retry=Retry(2)))
    assert resting.state is State.RETRYING
    for run in (unsent, resting):
        with pytest.raises(InvalidState, match=f"the run is {run.state}"):
            await world.call_back(run)
        [(status, note)] = await ledger(world, run)
        assert (status, note.startswith(f"the run is {run.state}")) == (IGNORED, True)
    await world.advance("1m")
    assert (await world.call_back(resting)).state is State.SUCCESS
    assert [status for status, _ in await ledger(world, resting)] == [IGNORED, RECEIVED]


async def test_what_the_target_answers_after_its_callback_is_kept(any_world: World) -> None:
    """X-88: the later response is stored and does not change the state."""
    world = any_world
    job = await world.job(callback=True, timeout="1m")
    world.sink.replies(Reply(hangs=True))
    run = await world.trigger(job)
    assert (await world.call_back(run)).state is State.SUCCESS
    await world.answer(run, Outcome(Verdict.WAIT, code=202))
    [attempt] = await world.attempts(run)
    assert (attempt.code, attempt.verdict) == (202, Verdict.WAIT)
    after = await world.run(run.id)
    assert (after.state, after.reason, after.failures) == (State.SUCCESS, Reason.CALLBACK, 0)


async def test_a_callback_may_name_job_and_run(world: World) -> None:
    """C-104, C-105: the pair has to belong together."""
    run, other = await waiting(world), await waiting(world)
    verbs = world.main.engine.runs
    assert run.job_id is not None and other.job_id is not None
    for job_id, run_id in ((other.job_id, run.id), (run.job_id, 999_999)):
        with pytest.raises(NotFound):
            await verbs.call_back_by_ids(job_id, run_id, Word(succeeded=True))
    assert await ledger(world, run) == []
    assert (await verbs.call_back_by_ids(run.job_id, run.id, Word(succeeded=True))).state is State.SUCCESS
    assert await ledger(world, run) == [(RECEIVED, "")]


async def test_a_run_that_ends_by_its_answer_takes_no_callback(world: World) -> None:
    world.sink.replies(Reply(hangs=True))
    run = await world.trigger(await world.job())
    assert (run.state, run.callback_token, run.job_id is None) == (State.RUNNING, None, False)
    with pytest.raises(InvalidState, match="not by a callback"):
        await world.main.engine.runs.call_back_by_ids(run.job_id or 0, run.id, Word(succeeded=True))
    assert [status for status, _ in await ledger(world, run)] == [IGNORED]


@pytest.mark.parametrize("wrong", ["", "x", "é" * 32, "0" * 31, "0" * 33, "A" * 32])
async def test_only_the_whole_token_opens_a_run(world: World, wrong: str) -> None:
    """C-19, C-73, C-111: 32 unguessable characters, compared whole."""
    run = await waiting(world)
    token = run.callback_token or ""
    assert (len(token), token.isalnum()) == (32, True)
    for text in (wrong, token.upper() + "x", token[:-1], token[:-1] + "é", f" {token[1:]}"):
        with pytest.raises(NotFound):
            await world.main.engine.runs.call_back(text, Word(succeeded=True))
    assert (await world.run(run.id)).state is State.CALLBACK_PENDING


async def test_a_callback_whose_answer_got_lost_can_be_repeated(world: World) -> None:
    run = await waiting(world)
    with world.store_away("hear", after_commit=True), pytest.raises(StoreUnavailable):
        await world.call_back(run)
    assert (await world.call_back(run)).state is State.SUCCESS
    assert [status for status, _ in await ledger(world, run)] == [RECEIVED, IGNORED]


async def test_a_callback_that_finds_the_run_moving_looks_again(world: World) -> None:
    """The target's answer is stored between reading the run and storing the callback."""
    world.sink.replies(Reply(WAIT, after=timedelta(seconds=1)))
    run = await world.trigger(await world.job(callback=True))
    node = world.main

    async def answered() -> None:
        world.clock.move_to(world.now + timedelta(seconds=1))
        await world.settle()
        assert (await world.run(run.id)).state is State.CALLBACK_PENDING

    node.gate.before["hear"] = answered
    assert (await world.call_back(run)).state is State.SUCCESS
    assert await ledger(world, run) == [(RECEIVED, "")]


# Progress


async def test_progress_is_kept_and_extends_nothing(any_world: World) -> None:
    world = any_world
    run = await waiting(world, callback_timeout="5m")
    await world.advance("1m")
    told = await world.tell(run, progress=0.4, message="half of it \x00")
    assert (told.state, told.deadline_at, told.epoch) == (State.CALLBACK_PENDING, run.deadline_at, run.epoch)
    progress = (await world.store.progress([run.id]))[run.id]
    assert (progress.fraction, progress.message[:10], progress.reported_at) == (0.4, "half of it", world.now)
    await world.advance("5m")
    assert (await world.run(run.id)).state is State.TIMEOUT
    assert await ledger(world, run) == [(RECEIVED, "")]


async def test_progress_can_put_the_deadline_off(any_world: World) -> None:
    world = any_world
    run = await waiting(world, callback_timeout="5m")
    started_at = world.now
    told = await world.tell(run, progress=0.1, extend=timedelta(minutes=5))
    assert told.deadline_at == started_at + timedelta(minutes=10)
    await world.advance("9m")
    assert (await world.run(run.id)).state is State.CALLBACK_PENDING
    await world.advance("2m")
    assert (await world.run(run.id)).state is State.TIMEOUT


async def test_a_wait_is_never_put_off_beyond_the_life_of_the_token(create_world: Create) -> None:
    """X-87: token_ttl bounds the wait from the target's answer on, however often it is put off."""
    world = await create_world(token_ttl=timedelta(minutes=20))
    run = await waiting(world, callback_timeout="5m")
    started_at = world.now
    for _ in range(10):
        await world.tell(run, message="still at it", extend=timedelta(minutes=4))
        await world.advance("1m")
    assert (await world.run(run.id)).deadline_at == started_at + timedelta(minutes=20)
    assert len(await ledger(world, run)) == 10
    await world.down_for("1m")
    await world.tell(run, extend=timedelta(hours=1))
    assert (await world.run(run.id)).deadline_at == started_at + timedelta(minutes=20)
    await world.advance("10m")
    assert (await world.run(run.id)).state is State.TIMEOUT


async def test_a_run_tried_again_has_a_wait_of_its_own(create_world: Create) -> None:
    world = await create_world(token_ttl=timedelta(minutes=20))
    run = await waiting(world, callback_timeout="5m")
    await world.tell(run, progress=0.9, extend=timedelta(hours=1))
    await world.advance("30m")
    world.sink.replies(WAIT)
    await world.rerun(run)
    again_at = world.now
    told = await world.tell(run, message="once more", extend=timedelta(minutes=5))
    assert told.deadline_at == again_at + timedelta(minutes=10)
    progress = (await world.store.progress([run.id]))[run.id]
    assert (progress.attempt, progress.fraction) == (2, None)


async def test_progress_told_before_the_target_answered_is_kept(world: World) -> None:
    """There is no deadline yet, so there is none to put off."""
    world.sink.replies(Reply(WAIT, after=timedelta(seconds=2)))
    run = await world.trigger(await world.job(callback=True, callback_timeout="5m"))
    told = await world.tell(run, progress=0.5, extend=timedelta(minutes=5))
    assert (told.state, told.deadline_at) == (State.RUNNING, None)
    await world.advance("2s")
    after = await world.run(run.id)
    assert (after.state, after.deadline_at) == (State.CALLBACK_PENDING, world.now + timedelta(minutes=5))
    assert (await world.store.progress([run.id]))[run.id].fraction == 0.5


async def test_progress_of_a_run_that_is_over_is_ignored(world: World) -> None:
    run = await waiting(world)
    await world.call_back(run)
    assert (await world.tell(run, progress=1.0)).state is State.SUCCESS
    assert [status for status, _ in await ledger(world, run)] == [RECEIVED, IGNORED]
    assert await world.store.progress([run.id]) == {}


# Runs that ask for a callback by themselves


async def test_a_run_may_ask_for_a_callback_that_its_job_does_not(any_world: World) -> None:
    """C-91: force_async; the token is there before anything is sent."""
    world = any_world
    job = await world.job()
    world.sink.replies(WAIT)
    run = await world.trigger(job, b'{"call back": true}')
    assert (run.state, run.deadline_at) == (State.CALLBACK_PENDING, world.now + timedelta(minutes=5))
    assert run.callback_token is not None
    assert world.sink.deliveries[0].context.callback_token == run.callback_token
    assert (await world.call_back(run)).state is State.SUCCESS
    assert (await world.trigger(job)).callback_token is None
