from __future__ import annotations

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from ksana.domain.chains import Advance, Chain, Shape, flat_shape, shape_of
from ksana.domain.graph import When, read_graph
from ksana.domain.states import FAILURES, FINAL, UNDER_WAY, State
from tests.domain.chain_shapes import ENDS, shape, shapes

WAITING, SCHEDULED, SUCCESS, FAILED, SKIPPED = (
    State.WAITING,
    State.SCHEDULED,
    State.SUCCESS,
    State.FAILED,
    State.SKIPPED,
)


def advance(
    chain_shape: Shape, states: list[State], *, is_stopping: bool = False
) -> tuple[set[int], set[int], State | None]:
    told = Chain(chain_shape, states, is_stopping=is_stopping).advance()
    return set(told.admits), set(told.skips), told.end


def test_a_graph_and_a_list_have_a_shape() -> None:
    graph = read_graph({"nodes": [{"id": "b", "deps": ["a"], "when": "all_done"}, {"id": "a"}], "maxParallel": 2})
    assert shape_of(graph) == shape([[1], []], [When.ALL_DONE, When.ALL_SUCCESS], 2)
    assert flat_shape(2, 1) == shape([[], []], most=1)


def test_dependents_of_a_failed_step_are_skipped_and_other_branches_go_on() -> None:
    branches = shape([[], [0], [1], [], [3]])
    assert advance(branches, [FAILED, WAITING, WAITING, SUCCESS, WAITING]) == ({4}, {1, 2}, None)
    assert advance(branches, [FAILED, SKIPPED, SKIPPED, SUCCESS, SUCCESS]) == (set(), set(), FAILED)


def test_fail_fast_begins_nothing_more_and_lets_finish_what_is_under_way() -> None:
    branches = shape([[], [0], [], [], [3]], fail_fast=True)
    assert advance(branches, [FAILED, WAITING, WAITING, State.RUNNING, WAITING]) == (set(), {1}, None)
    assert advance(branches, [FAILED, SKIPPED, WAITING, SUCCESS, WAITING]) == (set(), set(), FAILED)


def test_a_step_may_wait_for_the_end_or_the_failure_of_others() -> None:
    needs = [[], [], [0, 1], [0, 1]]
    either = shape(needs, [When.ALL_SUCCESS, When.ALL_SUCCESS, When.ALL_DONE, When.ANY_FAILED])
    assert advance(either, [FAILED, State.RUNNING, WAITING, WAITING]) == (set(), set(), None)
    assert advance(either, [State.TIMEOUT, SUCCESS, WAITING, WAITING]) == ({2, 3}, set(), None)
    assert advance(either, [SUCCESS, SUCCESS, WAITING, WAITING]) == ({2}, {3}, None)
    assert advance(either, [FAILED, SUCCESS, SUCCESS, SUCCESS]) == (set(), set(), FAILED)


def test_of_several_failures_the_first_in_the_definition_is_the_chains() -> None:
    chain = Chain(flat_shape(3), [State.RUNNING] * 3)
    chain.ended([(2, FAILED), (1, State.TIMEOUT)])
    assert chain.first_failed == 1 == Chain(flat_shape(3), chain.states).first_failed


def test_a_long_chain_is_skipped_without_recursion() -> None:
    size = 10_000
    line = shape([[], *([place] for place in range(size - 1))])
    chain = Chain(line, [State.RUNNING, *[WAITING] * (size - 1)])
    chain.ended([(0, FAILED)])
    told = chain.advance()
    assert (len(told.skips), told.end) == (size - 1, FAILED)


def test_what_stops_begins_and_skips_nothing() -> None:
    line = shape([[], [0], []])
    assert advance(line, [FAILED, WAITING, State.RUNNING], is_stopping=True) == (set(), set(), None)
    assert advance(line, [SUCCESS, WAITING, WAITING], is_stopping=True) == (set(), set(), State.CANCELED)
    assert advance(line, [SUCCESS, SUCCESS, SUCCESS], is_stopping=True) == (set(), set(), State.CANCELED)


def may_start(chain_shape: Shape, states: list[State], place: int) -> bool:
    """The rule, once more and as plainly as possible."""
    needs = [states[need] for need in chain_shape.needs[place]]
    if not all(state in FINAL for state in needs):
        return False
    match chain_shape.whens[place]:
        case When.ALL_SUCCESS:
            return all(state is SUCCESS for state in needs)
        case When.ALL_DONE:
            return True
        case When.ANY_FAILED:
            return any(state in FAILURES for state in needs)


def never_starts(chain_shape: Shape, states: list[State], place: int) -> bool:
    needs = [states[need] for need in chain_shape.needs[place]]
    match chain_shape.whens[place]:
        case When.ALL_SUCCESS:
            return any(state in FINAL and state is not SUCCESS for state in needs)
        case When.ALL_DONE:
            return False
        case When.ANY_FAILED:
            return all(state in FINAL and state not in FAILURES for state in needs)


def check(chain_shape: Shape, before: list[State], states: list[State], told: Advance) -> None:
    waiting = [place for place, state in enumerate(states) if state is WAITING]
    under_way = sum(state in UNDER_WAY for state in states)
    has_failed = any(state in FAILURES for state in states)
    is_held_up = chain_shape.fail_fast and has_failed
    is_full = chain_shape.max_parallel is not None and under_way >= chain_shape.max_parallel
    assert all(before[place] is WAITING and may_start(chain_shape, states, place) for place in told.admits)
    assert all(before[place] is WAITING and never_starts(chain_shape, states, place) for place in told.skips)
    assert not any(never_starts(chain_shape, states, place) for place in waiting)
    assert under_way <= (chain_shape.max_parallel or len(states))
    assert not (is_held_up and told.admits)
    assert is_held_up or is_full or not any(may_start(chain_shape, states, place) for place in waiting)
    if told.end is None:
        assert under_way
        return
    assert not under_way
    assert is_held_up or not waiting
    canceled = State.CANCELED if State.CANCELED in states else SUCCESS
    assert told.end is (FAILED if has_failed else canceled)


@given(shapes(), st.randoms(note_method_calls=False, use_true_random=True))
@settings(max_examples=60)
def test_every_chain_moves_on_by_the_rules_and_from_its_states_alone(chain_shape: Shape, dice: Random) -> None:
    states = [WAITING] * len(chain_shape.needs)
    chain = Chain(chain_shape, states)
    end = None
    while end is None:
        anew = Chain(chain_shape, states)
        stopping = Chain(chain_shape, states, is_stopping=True).advance()
        told, again = chain.advance(), anew.advance()
        assert (told.admits, sorted(told.skips), told.end) == (again.admits, sorted(again.skips), again.end)
        assert chain.first_failed == anew.first_failed
        is_busy = any(state in UNDER_WAY for state in states)
        assert stopping == Advance([], [], None if is_busy else State.CANCELED)
        before, states = states, list(chain.states)
        check(chain_shape, before, states, told)
        end = told.end
        under_way = [place for place, state in enumerate(states) if state in UNDER_WAY]
        states = [dice.choice(sorted(UNDER_WAY)) if state in UNDER_WAY else state for state in states]
        # What follows is not in the states yet: whoever works it out anew finds it there.
        for place in dice.sample(under_way, min(len(under_way), dice.randint(1, 2))):
            states[place] = dice.choice(ENDS)
            chain.ended([(place, states[place])])


@given(shapes(), st.randoms(note_method_calls=False, use_true_random=True))
@settings(max_examples=60)
def test_heirs_are_all_that_follows_from_a_success(chain_shape: Shape, dice: Random) -> None:
    chain = Chain(chain_shape, [WAITING] * len(chain_shape.needs))
    told = chain.advance()
    while told.end is None:
        place = dice.choice([place for place, state in enumerate(chain.states) if state in UNDER_WAY])
        heirs, end = list(chain.heirs(place)), dice.choice([*[SUCCESS] * 3, *ENDS])
        is_alone = sum(state in UNDER_WAY for state in chain.states) == 1
        chain.ended([(place, end)])
        told = chain.advance()
        if end is SUCCESS and heirs:
            assert is_alone
            assert told == Advance(heirs, [], None)


def test_a_step_that_is_not_the_only_one_under_way_has_no_heirs() -> None:
    branches = shape([[], [0], [], [1]])
    assert list(Chain(branches, [SCHEDULED, WAITING, State.RUNNING, WAITING]).heirs(0)) == []
    line = Chain(branches, [SCHEDULED, WAITING, SUCCESS, WAITING])
    assert list(line.heirs(0)) == [1]
    assert list(Chain(branches, [SCHEDULED, WAITING, SUCCESS, WAITING], is_stopping=True).heirs(0)) == []
    assert list(Chain(shape([[], [0], [0]], most=1), [SCHEDULED, WAITING, WAITING]).heirs(0)) == []
