"""The transition table as a page people can read. The page is made from the table, so the two cannot disagree."""

from __future__ import annotations

from ksana.domain.fires import MISFIRE_GRACE, MISFIRE_THRESHOLD
from ksana.domain.states import FINAL, TABLE, Event, State

_STATES = {
    State.WAITING: "for a slot of its job, or for what it depends on",
    State.SCHEDULED: "for its due instant and a free worker",
    State.RUNNING: "for the end of an attempt, or of the runs it has handed its work over to",
    State.RETRYING: "for its next attempt",
    State.CALLBACK_PENDING: "for the word of the target, or of a person, that it is done",
    State.STOPPING: "for the end of what is under way below it: somebody stopped it",
    State.SUCCESS: "done",
    State.FAILED: "ended without success",
    State.TIMEOUT: "the last attempt, the callback, or the chain took too long",
    State.CANCELED: "somebody ended or stopped it, or its job was paused or deleted",
    State.SKIPPED: "its job already had as many runs as it may; or, in a chain, what it depends on did not come about",
    State.MISSED: f"a one-time job was found more than {MISFIRE_GRACE.seconds} s late",
    State.DEAD_LETTER: "given up, kept until somebody looks at it",
}

_EVENTS = {
    Event.ADMIT: "a slot is free, or what it depends on has come about",
    Event.CLAIM: "a node takes it",
    Event.SUCCEED: "the target, its callback, or the end of its children says so",
    Event.ACCEPT: "the target took it on and will call back",
    Event.RETRY: "the attempt failed and another is allowed",
    Event.FAIL: "the attempt failed for good, or one of its children did",
    Event.TIME_OUT: "the last attempt, the callback, or the chain took too long",
    Event.BURY: "a pulled item was given up",
    Event.RECLAIM: "its node vanished or stopped",
    Event.CANCEL: "somebody cancels it, or it has stopped",
    Event.SKIP: "what it depends on did not come about, or its condition is not met",
    Event.DO_NOTHING: "it is a step that does nothing, and may start",
    Event.RERUN: "somebody wants it tried again",
    Event.BRANCH: "it hands its work over to children: the steps of a chain, the items of a list, the run of a job",
    Event.STOP: "somebody stops a run with children: nothing more of it begins",
    Event.REOPEN: "somebody has a step of it tried again or done, so it goes on",
    Event.COMPLETE: "somebody says that it is done",
    Event.RESUME: "what it was skipped for may come about after all",
    Event.REFUSE: "the object it is about must not be seen to any more",
    Event.DISCARD: "somebody purges its queue, dead letters included",
}

_BORN = {
    State.SCHEDULED: "a slot comes due, or somebody triggers the job",
    State.WAITING: "the same, and the job has no slot free; or it is a step of a chain that depends on others",
    State.SKIPPED: "the same, and the job skips what overlaps",
    State.MISSED: "a one-time job is found too late",
    State.SUCCESS: "it is a step of a chain that does nothing, and may start at once",
}


def render_states() -> str:
    """The page about the states of a run."""
    return "\n".join([*_head(), *_picture(), "", *_meanings(), ""])


def _head() -> list[str]:
    return [
        "# The states of a run",
        "",
        "<!-- Made by ksana.domain.pictures from the transition table; change the table, not this page. -->",
        "",
        "A run is in exactly one state. Only the arrows below exist; every move raises the run's epoch by one, and a",
        "writer that holds an older epoch has lost. A final state is left only when somebody wants it so: by `rerun`",
        "and `complete`, and in a chain by `reopen` and `resume`.",
        "",
        "A slot of a recurring job found more than "
        f"{MISFIRE_THRESHOLD.seconds} s late is a misfire: its job's rule says whether it still gets a run;",
        "if not, it is recorded in a gap, with the first and last instant left out and how many.",
        "",
    ]


def _picture() -> list[str]:
    lines = ["```mermaid", "stateDiagram-v2"]
    lines += [f"    [*] --> {state}" for state in _BORN]
    lines += [f"    {state} --> {after}: {_word(event)}" for (state, event), after in TABLE.items()]
    lines += [f"    {state} --> [*]" for state in State if state in FINAL]
    return [*lines, "```"]


def _meanings() -> list[str]:
    return [
        "| state | a run in it waits, or what it means | final |",
        "|---|---|---|",
        *(f"| `{state}` | {_STATES[state]} | {'yes' if state.is_final else ''} |" for state in State),
        "",
        "| a run begins as | when |",
        "|---|---|",
        *(f"| `{state}` | {when} |" for state, when in _BORN.items()),
        "",
        "| event | what happens |",
        "|---|---|",
        *(f"| {_word(event)} | {_EVENTS[event]} |" for event in Event),
    ]


def _word(event: Event) -> str:
    return event.value.replace("_", " ")
