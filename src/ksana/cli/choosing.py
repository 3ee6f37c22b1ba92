"""Which runs: the filters of the console as options, with words for whole families of states."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from ksana.cli.finding import find_job, job_names
from ksana.domain.errors import InvalidArgument
from ksana.domain.states import FAILURES, FINAL, State

if TYPE_CHECKING:
    from ksana.client import Client

FAMILIES: dict[str, frozenset[State]] = {
    "bad": FAILURES,
    "ok": frozenset({State.SUCCESS}),
    "ended": FINAL,
    "waiting": frozenset({State.WAITING, State.SCHEDULED}),
    "active": frozenset({State.RUNNING, State.STOPPING, State.RETRYING, State.CALLBACK_PENDING}),
}
_STATE = click.option(
    "--state",
    "states",
    multiple=True,
    help="A state such as failed, or bad, ok, ended, waiting, active; may be repeated.",
)
_FILTERS = (
    click.option("--job", help="Runs of this job, by id or name.", shell_complete=job_names),
    _STATE,
    click.option("--since", help="Ended, or due, since an instant or so long ago: 24h."),
    click.option("--until", help="Ended, or due, until then."),
    click.option("--tag", help="Runs of jobs with this tag."),
    click.option("--kind", help="Runs of this kind of target."),
    click.option("--name", default="", help="Any part of the job's name."),
)


def run_filters(function: Callable[..., Any]) -> Callable[..., Any]:
    for option in reversed(_FILTERS):
        function = option(function)
    return function


def state_filter(function: Callable[..., Any]) -> Callable[..., Any]:
    return _STATE(function)


def states_of(names: tuple[str, ...]) -> list[State]:
    """The states that these words mean."""
    found: set[State] = set()
    for name in names:
        known = name.upper().replace("-", "_")
        if name.lower() in FAMILIES:
            found |= FAMILIES[name.lower()]
        elif known in State.__members__:
            found.add(State(known))
        else:
            from ksana.api.kit.conversion import one_of

            words = [*FAMILIES, *(state.value.lower() for state in State)]
            raise InvalidArgument.of("--state", one_of(name, words))
    return sorted(found)


def query_words(server: Client, words: dict[str, Any]) -> dict[str, Any]:
    """Options as the client takes them."""
    said = {name: value for name, value in words.items() if name not in ("job", "states")}
    job = words["job"]
    return said | {"state": states_of(words["states"])} | ({} if job is None else {"job": find_job(server, job)})


def filter_words(server: Client, words: dict[str, Any]) -> dict[str, Any]:
    """Options as the filter of an operation takes them."""
    from ksana.client.asking import moment

    said = query_words(server, words)
    job = said.pop("job", None)
    bounds = {name: moment(said[name], f"--{name}") for name in ("since", "until")}
    return said | bounds | {"job_id": None if job is None else job.id}
