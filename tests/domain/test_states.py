from ksana.domain.states import (
    AT_REST,
    CLAIMABLE,
    FAILURES,
    FINAL,
    TABLE,
    UNDER_WAY,
    UNFINISHED,
    UNSTARTED,
    Event,
    State,
)

BORN = {State.SCHEDULED, State.WAITING, State.SKIPPED, State.MISSED}


def test_every_state_can_be_reached() -> None:
    reached = set(BORN)
    while more := {after for (state, _), after in TABLE.items() if state in reached} - reached:
        reached |= more
    assert reached == set(State)


def test_every_unfinished_state_leads_to_an_end() -> None:
    def ends(state: State, seen: frozenset[State]) -> bool:
        nexts = {after for (before, _), after in TABLE.items() if before is state} - seen
        return bool(nexts & FINAL) or any(ends(after, seen | {state}) for after in nexts)

    assert all(ends(state, frozenset()) for state in UNFINISHED)


def test_a_final_state_is_left_only_when_somebody_wants_it() -> None:
    left = {event for (state, event) in TABLE if state in FINAL}
    assert left == {Event.RERUN, Event.REOPEN, Event.COMPLETE, Event.RESUME, Event.DISCARD}
    assert not {event for (state, event) in TABLE if state in (State.SUCCESS, State.MISSED)}


def test_success_and_what_was_never_started_are_not_tried_again() -> None:
    tried = {state for state, event in TABLE if event is Event.RERUN}
    assert tried == FINAL - {State.SUCCESS, State.SKIPPED, State.MISSED}


def test_every_unfinished_state_can_be_canceled() -> None:
    assert {state for state, event in TABLE if event is Event.CANCEL} == UNFINISHED


def test_every_event_has_an_arrow() -> None:
    assert {event for _, event in TABLE} == set(Event)


def test_only_a_claim_leads_to_running_unless_children_do_the_work() -> None:
    assert {event for (_, event), after in TABLE.items() if after is State.RUNNING} == {
        Event.CLAIM,
        Event.BRANCH,
        Event.REOPEN,
    }


def test_a_run_that_is_stopping_can_only_be_canceled() -> None:
    assert [key for key in TABLE if key[0] is State.STOPPING] == [(State.STOPPING, Event.CANCEL)]


def test_what_can_be_tried_again_can_be_called_done() -> None:
    again = {state for state, event in TABLE if event is Event.RERUN}
    done = {state for state, event in TABLE if event is Event.COMPLETE}
    assert done == again | {State.RUNNING, State.CALLBACK_PENDING}


def test_finished_and_unfinished_share_no_state() -> None:
    assert set(State) == FINAL | UNFINISHED
    assert not FINAL & UNFINISHED
    assert all(state.is_final == (state in FINAL) for state in State)


def test_the_named_groups_are_what_their_names_say() -> None:
    assert {State.SCHEDULED, State.RETRYING} == CLAIMABLE
    assert UNSTARTED < AT_REST < UNFINISHED
    assert {State.RUNNING, State.CALLBACK_PENDING, State.STOPPING} == UNFINISHED - AT_REST
    assert UNDER_WAY | {State.WAITING} == UNFINISHED
    assert FAILURES < FINAL
