"""One letter for each word that stands in every run; scripts go by the letters. Ends are small letters."""

from __future__ import annotations

from ksana.domain.alerts import AlertState
from ksana.domain.runs import Trigger
from ksana.domain.states import FINAL, Reason, State

STATES: dict[State, str] = {
    State.WAITING: "W",
    State.SCHEDULED: "S",
    State.RUNNING: "R",
    State.RETRYING: "Y",
    State.CALLBACK_PENDING: "C",
    State.STOPPING: "P",
    State.SUCCESS: "s",
    State.FAILED: "f",
    State.TIMEOUT: "t",
    State.CANCELED: "c",
    State.SKIPPED: "k",
    State.MISSED: "m",
    State.DEAD_LETTER: "d",
}
REASONS: dict[Reason | None, str] = {
    None: "-",
    Reason.SLOT: "s",
    Reason.DEPENDENCY: "d",
    Reason.OVERLAP: "o",
    Reason.MISFIRE: "m",
    Reason.CATCH_UP_LIMIT: "l",
    Reason.PAUSED: "p",
    Reason.DELETED: "x",
    Reason.OPERATOR: "h",
    Reason.CALLBACK: "b",
    Reason.CALLBACK_TIMEOUT: "t",
    Reason.LEASE_LAPSED: "e",
    Reason.UNCERTAIN: "u",
    Reason.MAX_RECLAIMS: "r",
    Reason.SHUTDOWN: "q",
    Reason.CONDITION: "c",
    Reason.CHILDREN: "f",
    Reason.RELEASED: "n",
    Reason.GATE: "g",
    Reason.BUDGET: "i",
}
TRIGGERS: dict[Trigger, str] = {
    Trigger.SCHEDULE: "s",
    Trigger.CATCH_UP: "c",
    Trigger.MANUAL: "m",
    Trigger.APART: "a",
    Trigger.CHAIN: "n",
    Trigger.ENQUEUE: "e",
}
ALERTS: dict[AlertState, str] = {AlertState.PENDING: "p", AlertState.DELIVERED: "d", AlertState.FAILED: "f"}

UNFINISHED_LETTERS = "".join(letter for state, letter in STATES.items() if state not in FINAL)
FINAL_LETTERS = "".join(letter for state, letter in STATES.items() if state in FINAL)
FAMILIES = ("t:", "c:")
"""Runs of their own, and children of others, are in sets of their own."""
