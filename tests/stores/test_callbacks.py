"""The ledger of callbacks: a callback and all it changes are stored together, or not at all."""

import asyncio
from datetime import timedelta
from typing import Any

from ksana.domain.alerts import Alert, AlertQuery
from ksana.domain.callbacks import LEDGER_LENGTH, CallbackRecord, CallbackStatus, Heard, Progress
from ksana.domain.moves import Move, call_back, put_off
from ksana.domain.ports import Store
from ksana.domain.retention import Retention
from ksana.domain.runs import Run
from ksana.domain.states import Event, Reason, State
from tests.stores.builders import (
    HOUR,
    NOW,
    SECOND,
    a_job,
    a_move,
    a_run,
    an_attempt,
    an_exchange,
    claim,
    get,
    ids,
    one_at_a_time,
    put,
)
from tests.stores.conftest import Reopen

TOKEN = "t" * 32


def a_record(id: int, run_id: int = 1, **said: Any) -> CallbackRecord:
    values: dict[str, Any] = {"received_at": NOW, "status": CallbackStatus.RECEIVED}
    return CallbackRecord(id=id, run_id=run_id, **(values | said))


def some_progress(run_id: int = 1, **said: Any) -> Progress:
    values: dict[str, Any] = {"attempt": 1, "fraction": 0.4, "message": "half-way", "reported_at": NOW}
    return Progress(run_id=run_id, **(values | said))


def an_alert(run: Run, hook: str = "hook") -> Alert:
    return Alert(run_id=run.id, epoch=run.epoch, hook=hook, body=b"{}", created_at=NOW, due_at=NOW)


async def a_waiting_run(store: Store, id: int = 1) -> Run:
    """A run that waits for its callback."""
    await store.add_jobs([a_job(id)])
    await put(store, a_run(id, id, callback_token=f"{id:032d}"))
    [one] = await claim(store)
    await store.turn([a_move(one.run, Event.ACCEPT, deadline_at=NOW + HOUR)])
    return await get(store, id)


async def test_a_callback_and_the_move_it_makes_are_stored_together(store: Store) -> None:
    """C-74, C-103."""
    run = await a_waiting_run(store)
    moved = call_back(run, True, NOW)
    record = a_record(1, headers={"x-from": "日本 🙂"}, body=b'\xff\x00{"status": "SUCCESS"}')
    assert await store.hear(Heard(record, Move(run.epoch, moved, frees_slot=True))) is not None
    assert await get(store, 1) == moved
    assert await store.callbacks(1) == [record]


async def test_a_callback_that_comes_too_late_leaves_nothing(store: Store) -> None:
    run = await a_waiting_run(store)
    await store.turn([a_move(run, Event.CANCEL, reason=Reason.OPERATOR)])
    moved = call_back(run, False, NOW)
    heard = Heard(a_record(1), Move(run.epoch, moved), some_progress(), (an_alert(moved),))
    assert await store.hear(heard) is None
    assert (await get(store, 1)).state is State.CANCELED
    assert (await store.callbacks(1), await store.progress([1])) == ([], {})
    assert (await store.find_alerts(AlertQuery())).total == 0


async def test_a_callback_that_changes_nothing_is_kept_whatever_becomes_of_the_run(store: Store) -> None:
    """C-106: repeats are kept as ignored."""
    await a_waiting_run(store)
    records = [a_record(i, status=CallbackStatus.IGNORED, note=f"the run was over {i} \x00 🙂") for i in (1, 2, 3)]
    for record in records:
        assert await store.hear(Heard(record)) is not None
    kept = await store.callbacks(1)
    assert [(one.id, one.status) for one in kept] == [(i, CallbackStatus.IGNORED) for i in (1, 2, 3)]
    assert kept[0].note.startswith("the run was over 1 ")
    assert await store.callbacks(2) == []


async def test_the_ledger_of_a_run_is_bounded_and_what_ends_the_run_is_always_in_it(store: Store) -> None:
    """C-74, C-106: whoever holds a token may call for ever; it counts as before, and leaves no more lines."""
    run = await a_waiting_run(store)
    await a_waiting_run(store, 2)
    for i in range(1, LEDGER_LENGTH + 3):
        assert await store.hear(Heard(a_record(i), None, some_progress(fraction=i / 1000))) is not None
    assert [one.id for one in await store.callbacks(1)] == list(range(1, LEDGER_LENGTH + 1))
    assert (await store.progress([1]))[1].fraction == (LEDGER_LENGTH + 2) / 1000
    later = put_off(run, NOW + 2 * HOUR)
    assert await store.hear(Heard(a_record(201), Move(run.epoch, later))) is not None
    assert await get(store, 1) == later
    ended = call_back(later, True, NOW)
    assert await store.hear(Heard(a_record(202), Move(later.epoch, ended, frees_slot=True))) is not None
    assert await store.hear(Heard(a_record(203, status=CallbackStatus.IGNORED))) is not None
    kept = [one.id for one in await store.callbacks(1)]
    assert (len(kept), kept[-1], await get(store, 1)) == (LEDGER_LENGTH + 1, 202, ended)
    assert await store.hear(Heard(a_record(204, 2))) is not None
    assert [one.id for one in await store.callbacks(2)] == [204]


async def test_of_callbacks_that_race_one_counts(store: Store, reopen: Reopen) -> None:
    """C-107: exactly one RECEIVED, however many nodes heard one."""
    run = await a_waiting_run(store)
    stores = [store, await reopen(), await reopen()]
    said = [Heard(a_record(i), Move(run.epoch, call_back(run, i % 2 == 0, NOW), frees_slot=True)) for i in range(1, 7)]
    counted = await asyncio.gather(*(stores[i % 3].hear(heard) for i, heard in enumerate(said)))
    assert len(counted) - counted.count(None) == 1
    [record] = await store.callbacks(1)
    winner = said[counted.index([])]
    assert record == winner.record
    assert winner.move is not None
    assert await get(store, 1) == winner.move.run


async def test_a_callback_frees_the_slot_of_its_run(store: Store) -> None:
    await store.add_jobs([a_job(1, overlap=one_at_a_time())])
    await put(store, a_run(1, callback_token=TOKEN), a_run(2, state=State.WAITING, reason=Reason.SLOT))
    [one] = await claim(store)
    moved = call_back(one.run, True, NOW)
    assert await store.hear(Heard(a_record(1), Move(one.run.epoch, moved, frees_slot=True))) is not None
    assert ids(await claim(store)) == [2]


async def test_the_last_word_on_progress_stands(store: Store) -> None:
    await a_waiting_run(store)
    await a_waiting_run(store, 2)
    first = some_progress(fraction=None, message="begun 🙂", limit_at=NOW + HOUR)
    last = some_progress(attempt=2, fraction=0.987654, message="", reported_at=NOW + SECOND)
    assert await store.hear(Heard(a_record(1), None, first)) is not None
    assert await store.progress([1, 2, 3]) == {1: first}
    assert await store.hear(Heard(a_record(2), None, last)) is not None
    assert await store.hear(Heard(a_record(3, 2), None, some_progress(2))) is not None
    assert await store.progress([1, 2, 3]) == {1: last, 2: some_progress(2)}
    assert await store.progress([]) == {}
    assert len(await store.callbacks(1)) == 2


async def test_a_deadline_that_was_put_off_is_the_one_that_counts(store: Store) -> None:
    run = await a_waiting_run(store)
    later = put_off(run, NOW + 2 * HOUR)
    assert await store.hear(Heard(a_record(1), Move(run.epoch, later), some_progress())) is not None
    assert await get(store, 1) == later
    assert await store.lapsed(NOW + HOUR, 10) == []
    [one] = await store.lapsed(NOW + 2 * HOUR, 10)
    assert one.run == later
    # Whoever read the old deadline cannot end the wait by it.
    assert (await store.turn([a_move(run, Event.TIME_OUT)])).lost == {1}


async def test_alerts_of_a_callback_are_kept_with_it(store: Store) -> None:
    """C-14: a callback that says it failed is a failure like any other."""
    run = await a_waiting_run(store)
    moved = call_back(run, False, NOW, "no")
    alerts = (an_alert(moved, "one"), an_alert(moved, "two"))
    assert await store.hear(Heard(a_record(1), Move(run.epoch, moved), None, alerts)) is not None
    assert (await store.find_alerts(AlertQuery())).items == list(alerts)


async def test_what_was_answered_after_the_callback_is_kept(store: Store) -> None:
    """X-88: the later response is stored and changes nothing."""
    await store.add_jobs([a_job(1)])
    await put(store, a_run(1, callback_token=TOKEN))
    [one] = await claim(store)
    assert await store.hear(Heard(a_record(1), Move(one.run.epoch, call_back(one.run, True, NOW)))) is not None
    attempt = an_attempt(one.run, exchange=an_exchange(response_body=b"202"))
    gone = an_attempt(a_run(99), exchange=an_exchange())
    for _ in range(2):
        await store.add_attempts([attempt, gone])
    assert await store.attempts(1) == [attempt]
    assert await store.attempts(99) == []
    assert (await get(store, 1)).state is State.SUCCESS


async def test_what_was_said_of_a_run_is_forgotten_with_it(store: Store) -> None:
    run = await a_waiting_run(store)
    await a_waiting_run(store, 2)
    assert await store.hear(Heard(a_record(1), Move(run.epoch, call_back(run, True, NOW)), some_progress())) is not None
    assert await store.hear(Heard(a_record(2, 2), None, some_progress(2))) is not None
    now = NOW + timedelta(days=9)
    assert await store.prune(Retention(now, now, 0, 100)) == 1
    assert (await store.callbacks(1), len(await store.callbacks(2))) == ([], 1)
    assert (await store.progress([1, 2])).keys() == {2}
