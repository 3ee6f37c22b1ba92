"""Each kind of failure has its exit code, and a sentence that names the fix."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import click
import pytest

from ksana.cli.problems import PartlyFailed, document, exit_code_of, sentences, showing_problems
from ksana.client import errors
from ksana.client.results import Run
from ksana.domain.errors import (
    ConcurrencyLimit,
    InvalidArgument,
    InvalidState,
    KsanaError,
    NotFound,
    StoreUnavailable,
    VersionConflict,
)
from ksana.domain.runs import Trigger
from ksana.domain.states import State

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def run() -> Run:
    return Run(
        id=7,
        job_id=1,
        job_name="slow",
        surface="v2",
        kind="noop",
        queue="default",
        trigger=Trigger.MANUAL,
        planned_at=NOW,
        state=State.RUNNING,
        reason=None,
        attempt=1,
        failures=0,
        reclaims=0,
        fence=1,
        priority="normal",
        due_at=NOW,
        deadline_at=None,
        node_id=1,
        created_at=NOW,
        started_at=NOW,
        ended_at=None,
        duration_ms=None,
        error="",
    )


def refusal(kind: type[errors.ApiError], status: int) -> errors.ApiError:
    return kind("no", status=status, code="NO", request_id="r1")


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (InvalidArgument.of("a", "b"), 2),
        (refusal(errors.Invalid, 422), 2),
        (NotFound("gone"), 3),
        (refusal(errors.NotFound, 404), 3),
        (VersionConflict("late"), 4),
        (InvalidState("over"), 4),
        (ConcurrencyLimit("full"), 4),
        (refusal(errors.Conflict, 409), 4),
        (StoreUnavailable("down"), 5),
        (refusal(errors.Unavailable, 503), 5),
        (errors.Unreachable("no answer", maybe_done=False), 5),
        (refusal(errors.NotAllowed, 401), 6),
        (errors.StillRunning(run()), 7),
        (PartlyFailed("1 of 2"), 8),
        (KsanaError("else"), 1),
    ],
)
def test_a_failure_is_told_apart_by_its_exit_code(error: KsanaError, code: int) -> None:
    assert exit_code_of(error) == code
    with pytest.raises(SystemExit) as ended, showing_problems():
        raise error
    assert ended.value.code == code


def test_a_bug_and_an_interruption_have_codes_of_their_own(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as bug, showing_problems():
        raise ZeroDivisionError("by accident")
    assert bug.value.code == 70
    assert "this is a bug" in capsys.readouterr().err
    for interruption in (KeyboardInterrupt(), click.Abort()):
        with pytest.raises(SystemExit) as ended, showing_problems():
            raise interruption
        assert ended.value.code == 130


def test_in_json_the_error_is_on_stdout_too(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit), showing_problems(as_json=True):
        raise InvalidArgument.of("schedule.every", "is no span")
    said = capsys.readouterr()
    assert json.loads(said.out)["problems"] == [{"field": "schedule.every", "message": "is no span"}]
    assert said.err == "ksana: schedule.every: is no span\n"


def test_who_may_not_or_cannot_reach_it_is_told_what_to_do() -> None:
    assert "ksana key create" in sentences(refusal(errors.NotAllowed, 401))[0]
    assert "ksana serve" in sentences(errors.Unreachable("no answer", maybe_done=False))[0]
    assert document(refusal(errors.NotFound, 404))["request_id"] == "r1"
