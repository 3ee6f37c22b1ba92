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
    assert not told.passes
    return set(told.admits), set(told.skips), told.end


def test_a_graph_and_a_list_have_a_shape() -> None:
    nodes = [{"id": "b", "deps": ["a"], "when": "all_done"}, {"id": "a", "type": "echo"}]
    graph = read_graph({"nodes": nodes, "maxParallel": 2})
    assert shape_of(graph) == shape([[1], []], [When.ALL_DONE, When.ALL_SUCCESS], 2, idle=[0])
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


def test_only_a_step_about_which_there_is_nothing_to_find_out_does_nothing() -> None:
    nodes = [
        {"id": "a", "type": "echo"},
        {"id": "plain", "deps": ["a"]},
        {"id": "with a cfg", "deps": ["a"], "type": "noop", "cfg": {"note": "a gate"}},
        {"id": "with a word", "deps": ["a"], "when": "any_failed"},
        {"id": "with a condition", "deps": ["a"], "if": "{{a.artifact}} == 1"},
        {"id": "with a marker", "deps": ["a"], "cfg": {"note": "{{a.artifact}}"}},
        {"id": "for each", "map": [1, 2]},
    ]
    graph = read_graph({"nodes": nodes})
    assert [step.id for step in graph.steps if step.does_nothing] == ["plain", "with a cfg", "with a word"]
    assert shape_of(graph).idle == {1, 2, 3}


def test_steps_that_do_nothing_are_done_once_they_may_start_and_need_no_room() -> None:
    gate = shape([[], [], [0, 1], [2], [2]], most=1, idle=[2])
    assert Chain(gate, [SUCCESS, State.RUNNING, WAITING, WAITING, WAITING]).advance() == Advance([], [], None)
    assert Chain(gate, [SUCCESS, SUCCESS, WAITING, WAITING, WAITING]).advance() == Advance([3], [], None, [2])
    side = shape([[], [0], []], most=1, idle=[1])
    assert Chain(side, [SUCCESS, WAITING, State.RUNNING]).advance() == Advance([], [], None, [1])


def test_steps_that_do_nothing_are_skipped_held_up_and_stopped_like_any_other() -> None:
    idle = shape([[], [0], [], [2]], [When.ALL_SUCCESS] * 3 + [When.ANY_FAILED], idle=[1, 2, 3])
    assert Chain(idle, [FAILED, WAITING, WAITING, WAITING]).advance() == Advance([], [1, 3], FAILED, [2])
    states = [FAILED, WAITING, WAITING, WAITING]
    held_up = shape([[], [], [], []], fail_fast=True, idle=[1, 2, 3])
    assert Chain(held_up, states).advance() == Advance([], [], FAILED)
    assert Chain(idle, states, is_stopping=True).advance() == Advance([], [], State.CANCELED)


def test_a_long_chain_of_steps_that_do_nothing_is_done_without_recursion() -> None:
    size = 10_000
    line = shape([[], *([place] for place in range(size - 1))], idle=range(size))
    chain = Chain(line, [WAITING] * size)
    assert chain.advance() == Advance([], [], SUCCESS, list(range(size)))
    before_the_last = Chain(
        shape([list(needs) for needs in line.needs], idle=range(1, size - 1)), [SCHEDULED, *[WAITING] * (size - 1)]
    )
    assert before_the_last.heirs(0) == ([size - 1], list(range(1, size - 1)))


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
    assert all(before[place] is WAITING and may_start(chain_shape, states, place) for place in told.passes)
    assert all(states[place] is SUCCESS for place in told.passes)
    assert chain_shape.idle.issuperset(told.passes) and chain_shape.idle.isdisjoint(told.admits)
    assert not any(never_starts(chain_shape, states, place) for place in waiting)
    assert under_way <= (chain_shape.max_parallel or len(states))
    assert not (is_held_up and (told.admits or told.passes))
    if not is_held_up:
        ready = {place for place in waiting if may_start(chain_shape, states, place)}
        assert is_full or not ready
        assert chain_shape.idle.isdisjoint(ready)
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
        assert sorted(told.passes) == sorted(again.passes)
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
        heirs, end = chain.heirs(place), dice.choice([*[SUCCESS] * 3, *ENDS])
        is_alone = sum(state in UNDER_WAY for state in chain.states) == 1
        chain.ended([(place, end)])
        told = chain.advance()
        assert heirs.starts or not heirs.passes
        if end is SUCCESS and heirs.starts:
            assert is_alone
            assert (told.admits, told.skips, told.end) == (sorted(heirs.starts), [], None)
            assert sorted(told.passes) == sorted(heirs.passes)


def test_a_step_that_is_not_the_only_one_under_way_has_no_heirs() -> None:
    branches = shape([[], [0], [], [1]])
    assert Chain(branches, [SCHEDULED, WAITING, State.RUNNING, WAITING]).heirs(0) == ([], [])
    line = Chain(branches, [SCHEDULED, WAITING, SUCCESS, WAITING])
    assert line.heirs(0) == ([1], [])
    assert Chain(branches, [SCHEDULED, WAITING, SUCCESS, WAITING], is_stopping=True).heirs(0) == ([], [])
    assert Chain(shape([[], [0], [0]], most=1), [SCHEDULED, WAITING, WAITING]).heirs(0) == ([], [])


def test_heirs_are_foreseen_beyond_steps_that_do_nothing() -> None:
    gate = shape([[], [0], [0], [1, 2], [3]], idle=[1, 2, 3])
    chain = Chain(gate, [State.RUNNING, *[WAITING] * 4])
    starts, passes = chain.heirs(0)
    assert (starts, sorted(passes)) == ([4], [1, 2, 3])
    # With nobody to hand over to there are none.
    assert Chain(shape([[], [0]], idle=[1]), [State.RUNNING, WAITING]).heirs(0) == ([], [])
