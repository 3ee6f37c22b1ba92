from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ksana.domain.chains import Advance, Chain, Shape, flat_shape
from ksana.domain.errors import InvalidState
from ksana.domain.graph import When
from ksana.domain.moves import Move, advance
from ksana.domain.runs import Run
from ksana.domain.states import FINAL, TABLE, UNDER_WAY, Event, Reason, State
from ksana.domain.steering import (
    UNSUCCESSFUL,
    Family,
    complete_step,
    ended,
    expire,
    go_on,
    halt,
    is_branched,
    put_back,
    retry_failed,
    retry_step,
    risen,
    stopped,
)
from tests.domain.chain_shapes import ENDS, shape, shapes

NOW = datetime(2030, 1, 1, tzinfo=UTC)
LATER = NOW + timedelta(minutes=1)
CHAIN_ID = 100

WAITING, RUNNING, SUCCESS, FAILED, CANCELED, SKIPPED = (
    State.WAITING,
    State.RUNNING,
    State.SUCCESS,
    State.FAILED,
    State.CANCELED,
    State.SKIPPED,
)


def a_run(id: int, state: State, *, branched: bool = False) -> Run:
    return Run(
        id=id,
        state=state,
        epoch=id,
        due_at=NOW,
        created_at=NOW,
        step=f"s{id}",
        node_id=7 if state is RUNNING and not branched else None,
        reason=Reason.CHILDREN if branched else None,
        ended_at=NOW if state in FINAL else None,
    )


def family(parent: State, *children: State, branched: Iterable[int] = ()) -> Family:
    runs = [a_run(CHAIN_ID + 1 + place, state, branched=place in branched) for place, state in enumerate(children)]
    return Family(a_run(CHAIN_ID, parent, branched=parent is RUNNING), runs)


def after(before: Family, moves: list[Move]) -> Family:
    """The family after these moves, each of which must be an arrow of the table from where the run then stands."""
    runs = {run.id: run for run in (before.parent, *before.children)}
    for move in moves:
        was = runs[move.run.id]
        assert (move.epoch, move.run.epoch) == (was.epoch, was.epoch + 1)
        assert move.run.state in {to for (state, _), to in TABLE.items() if state is was.state}
        assert move.taken_from == (was.node_id if was.state is RUNNING else None)
        assert (move.run.ended_at == LATER) == (move.run.state in FINAL)
        runs[move.run.id] = move.run
    return Family(runs[CHAIN_ID], [runs[child.id] for child in before.children])


def standing(now: Family) -> tuple[State, list[State]]:
    return now.parent.state, [child.state for child in now.children]


LINE = shape([[], [0], [1], []])


def test_a_failed_step_is_tried_again_and_what_was_skipped_for_it_waits_again() -> None:
    before = family(FAILED, FAILED, SKIPPED, SKIPPED, SUCCESS)
    moves = retry_step(before, LINE, 0, LATER, reason="new disk", artifact=b"1")
    now = after(before, moves)
    assert standing(now) == (RUNNING, [State.RETRYING, WAITING, WAITING, SUCCESS])
    retried = now.children[0]
    assert (retried.due_at, retried.error, retried.reason, moves[0].artifact) == (
        LATER,
        "new disk",
        Reason.OPERATOR,
        b"1",
    )
    assert (now.parent.reason, now.parent.ended_at, now.parent.node_id) == (Reason.CHILDREN, None, None)
    assert now.children[1].reason is Reason.DEPENDENCY


def test_a_completed_step_lets_the_chain_go_on_at_once() -> None:
    before = family(FAILED, FAILED, SKIPPED, SKIPPED, SUCCESS)
    now = after(before, moves := complete_step(before, LINE, 0, LATER, reason="by hand", artifact=b"{}"))
    assert standing(now) == (RUNNING, [SUCCESS, State.SCHEDULED, WAITING, SUCCESS])
    assert (moves[0].artifact, now.children[0].error, now.children[1].due_at) == (b"{}", "by hand", LATER)
    last = family(FAILED, SUCCESS, SUCCESS, State.TIMEOUT, SUCCESS)
    moves = complete_step(last, LINE, 2, LATER, reason="", artifact=None)
    assert standing(after(last, moves)) == (SUCCESS, [SUCCESS] * 4)
    assert moves[-1].frees_slot


def test_what_is_skipped_for_another_reason_as_well_does_not_move() -> None:
    both = shape([[], [], [0, 1], [2]])
    before = family(RUNNING, FAILED, RUNNING, SKIPPED, SKIPPED)
    moves = complete_step(before, both, 1, LATER, reason="", artifact=None)
    assert [move.run.id for move in moves] == [CHAIN_ID + 2, CHAIN_ID]
    assert standing(after(before, moves)) == (FAILED, [FAILED, SUCCESS, SKIPPED, SKIPPED])


def test_completing_again_changes_nothing() -> None:
    done = family(SUCCESS, SUCCESS)
    assert complete_step(done, flat_shape(1), 0, LATER, reason="", artifact=b"2") == []


@pytest.mark.parametrize("state", State)
def test_only_what_ended_without_success_is_retried_and_only_what_may_be_is_completed(state: State) -> None:
    before = family(RUNNING, state, RUNNING)
    if state in UNSUCCESSFUL:
        moves = retry_step(before, flat_shape(2), 0, LATER, reason="", artifact=None)
        assert standing(after(before, moves)) == (RUNNING, [State.RETRYING, RUNNING])
    else:
        with pytest.raises(InvalidState, match=f"node s101 is {state}"):
            retry_step(before, flat_shape(2), 0, LATER, reason="", artifact=None)
    if state in UNSUCCESSFUL | {RUNNING, State.CALLBACK_PENDING, SUCCESS}:
        moves = complete_step(before, flat_shape(2), 0, LATER, reason="", artifact=None)
        assert standing(after(before, moves)) == (RUNNING, [SUCCESS, RUNNING])
    else:
        with pytest.raises(InvalidState, match=f"node s101 is {state}"):
            complete_step(before, flat_shape(2), 0, LATER, reason="", artifact=None)


def test_nothing_goes_on_in_a_chain_that_is_stopping() -> None:
    stopping = family(State.STOPPING, FAILED, RUNNING)
    for act in (retry_step, complete_step):
        with pytest.raises(InvalidState, match="run 100 is stopping"):
            act(stopping, flat_shape(2), 0, LATER, reason="", artifact=None)


def test_all_that_failed_is_tried_again() -> None:
    before = family(FAILED, FAILED, SKIPPED, State.TIMEOUT, CANCELED)
    moves = retry_failed(before, shape([[], [0], [], []]), LATER)
    assert standing(after(before, moves)) == (RUNNING, [State.RETRYING, WAITING, State.RETRYING, State.RETRYING])
    for state in (SUCCESS, RUNNING, State.STOPPING):
        with pytest.raises(InvalidState):
            retry_failed(family(state, SUCCESS), flat_shape(1), LATER)


def test_a_chain_that_was_stopped_before_anything_failed_goes_on_with_what_waits() -> None:
    before = family(CANCELED, SUCCESS, WAITING, WAITING, SUCCESS)
    assert standing(after(before, retry_failed(before, LINE, LATER))) == (
        RUNNING,
        [SUCCESS, State.SCHEDULED, WAITING, SUCCESS],
    )
    unbegun = family(CANCELED)
    assert standing(after(unbegun, retry_failed(unbegun, flat_shape(0), LATER))) == (SUCCESS, [])


def test_a_reopened_chain_gets_its_time_anew() -> None:
    timed = msgspec.structs.replace(flat_shape(2), timeout=timedelta(hours=1))
    before = family(State.TIMEOUT, CANCELED, SUCCESS)
    assert after(before, retry_failed(before, timed, LATER)).parent.deadline_at == LATER + timedelta(hours=1)


def test_steps_whose_children_were_tried_again_first_just_go_on() -> None:
    before = family(FAILED, RUNNING, SKIPPED, branched=[0])
    line = shape([[], [0]])
    for moves in (go_on(before, line, LATER), retry_failed(before, line, LATER)):
        assert standing(after(before, moves)) == (RUNNING, [RUNNING, WAITING])


def test_a_family_follows_a_step_that_goes_on_or_ended_better_and_nothing_else() -> None:
    line = shape([[], [0]])
    better = family(FAILED, SUCCESS, SKIPPED)
    assert standing(after(better, go_on(better, line, LATER))) == (RUNNING, [SUCCESS, State.SCHEDULED])
    for parent, child in [(SUCCESS, SUCCESS), (State.STOPPING, RUNNING), (State.RETRYING, RUNNING)]:
        assert go_on(family(parent, child, SKIPPED), line, LATER) == []


def test_a_run_has_risen_if_it_goes_on_or_ended_better() -> None:
    line = shape([[], [0]])
    by_hand: dict[str, Any] = {"reason": "", "artifact": None}
    failed = family(FAILED, FAILED, SKIPPED)
    again, done = risen(failed, retry_step(failed, line, 0, LATER, **by_hand)), family(FAILED, SUCCESS, FAILED)
    better = risen(done, complete_step(done, line, 1, LATER, **by_hand))
    assert again is not None and again.state is RUNNING
    assert better is not None and better.state is SUCCESS
    two = family(FAILED, FAILED, FAILED)
    for before, moves in [
        (failed, []),
        (two, complete_step(two, flat_shape(2), 0, LATER, **by_hand)),
        (running := family(RUNNING, RUNNING, WAITING), halt(running, LATER)),
    ]:
        assert risen(before, moves) is None


def test_a_step_that_is_put_back_takes_its_chain_along_if_that_hears_of_it() -> None:
    line = shape([[], [0]])

    def put_back_in(parent: State) -> Family:
        before = family(parent, State.DEAD_LETTER, SKIPPED)
        child = before.children[0]
        move = Move(child.epoch, advance(child, Event.RERUN, LATER, due_at=LATER))
        late = msgspec.structs.replace(move, epoch=child.epoch - 1)
        assert put_back(before, line, late, LATER) == []
        return after(before, put_back(before, line, move, LATER))

    assert standing(put_back_in(FAILED)) == (RUNNING, [State.RETRYING, WAITING])
    assert standing(put_back_in(SUCCESS)) == (SUCCESS, [State.RETRYING, SKIPPED])


def test_what_is_tried_again_waits_for_what_it_needs_and_for_room() -> None:
    bounded = shape([[], [], [0], []], most=2)
    before = family(FAILED, FAILED, FAILED, CANCELED, FAILED)
    moves = retry_failed(before, bounded, LATER)
    now = after(before, moves)
    assert standing(now) == (RUNNING, [State.RETRYING, State.RETRYING, WAITING, WAITING])
    assert now.children[3].reason is Reason.DEPENDENCY
    never = family(FAILED, FAILED, SUCCESS, CANCELED, SUCCESS)
    now = after(never, retry_step(never, bounded, 2, LATER, reason="", artifact=None))
    assert standing(now) == (FAILED, [FAILED, SUCCESS, SKIPPED, SUCCESS])


@pytest.mark.parametrize("state", [WAITING, State.SCHEDULED, State.RETRYING, RUNNING])
def test_a_chain_is_asked_to_stop_and_whoever_sees_it_halts_it(state: State) -> None:
    before = family(state)
    now = after(before, [stopped(before.parent, LATER)])
    assert (now.parent.state, now.parent.deadline_at, now.parent.reason) == (State.STOPPING, LATER, Reason.OPERATOR)
    assert standing(after(now, halt(now, LATER))) == (CANCELED, [])


def test_a_halt_ends_what_is_under_way_and_leaves_the_rest() -> None:
    before = family(State.STOPPING, SUCCESS, RUNNING, State.RETRYING, State.CALLBACK_PENDING, State.SCHEDULED, WAITING)
    now = after(before, moves := halt(before, LATER))
    assert standing(now) == (CANCELED, [SUCCESS, CANCELED, CANCELED, CANCELED, CANCELED, WAITING])
    assert all(move.frees_slot for move in moves)


def test_a_halt_waits_for_steps_with_children_of_their_own() -> None:
    before = family(State.STOPPING, RUNNING, RUNNING, branched=[1])
    now = after(before, halt(before, LATER))
    assert standing(now) == (State.STOPPING, [CANCELED, State.STOPPING])
    assert halt(now, LATER) == []


def test_a_chain_whose_time_is_up_ends_with_all_that_is_under_way() -> None:
    before = family(RUNNING, RUNNING, WAITING, RUNNING, branched=[2])
    now = after(before, expire(before, LATER))
    assert standing(now) == (State.TIMEOUT, [CANCELED, WAITING, State.STOPPING])
    assert now.parent.error == now.children[0].error == "the chain took longer than its timeout"
    assert now.children[0].reason is None
    assert expire(now, LATER) == []


@pytest.mark.parametrize("end", [SUCCESS, FAILED, CANCELED])
def test_a_chain_ends_as_its_steps_say(end: State) -> None:
    run = ended(family(RUNNING).parent, end, LATER, "s1: no")
    assert (run.state, run.reason, run.error, run.ended_at) == (end, Reason.CHILDREN, "s1: no", LATER)


def grown(chain_shape: Shape, dice: Random) -> Family:
    """A chain that has come some way by itself, or all of it."""
    chain = Chain(chain_shape, [WAITING] * len(chain_shape.needs))
    end = chain.advance().end
    for _ in range(dice.randint(0, len(chain_shape.needs))):
        under_way = [place for place, state in enumerate(chain.states) if state in UNDER_WAY]
        if end is None and under_way:
            chain.ended([(dice.choice(under_way), dice.choice(ENDS))])
            end = chain.advance().end
    return family(end or RUNNING, *chain.states)


@given(shapes(steps=5), st.randoms(note_method_calls=False, use_true_random=True))
@settings(max_examples=60)
def test_whatever_people_do_the_family_is_consistent_afterwards(chain_shape: Shape, dice: Random) -> None:
    now = grown(chain_shape, dice)
    for _ in range(4):
        place = dice.randrange(len(now.children))
        try:
            match dice.randrange(5):
                case 0:
                    moves = retry_step(now, chain_shape, place, LATER, reason="", artifact=None)
                case 1:
                    moves = complete_step(now, chain_shape, place, LATER, reason="", artifact=None)
                case 2:
                    moves = retry_failed(now, chain_shape, LATER)
                case 3:
                    moves = expire(now, LATER)
                case _:
                    now = after(now, [stopped(now.parent, LATER)])
                    moves = halt(now, LATER)
        except InvalidState:
            continue
        now = after(now, moves)
        states = [child.state for child in now.children]
        if is_branched(now.parent):
            told = Chain(chain_shape, states).advance()
            assert told == Advance([], [], None), "all that follows has been done"
        else:
            assert now.parent.state in FINAL
            assert not any(state in UNDER_WAY for state in states)
            if now.parent.state is SUCCESS:
                assert set(states) <= {SUCCESS, SKIPPED}


def test_a_handler_that_ran_is_not_undone() -> None:
    handled = shape([[], [0]], [When.ALL_SUCCESS, When.ANY_FAILED])
    before = family(FAILED, FAILED, SUCCESS)
    now = after(before, complete_step(before, handled, 0, LATER, reason="", artifact=None))
    assert standing(now) == (SUCCESS, [SUCCESS, SUCCESS])
