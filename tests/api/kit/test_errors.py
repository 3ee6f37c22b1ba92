from __future__ import annotations

from collections.abc import Iterator

import pytest

from ksana.api.kit import errors as kit_errors
from ksana.api.kit.errors import STATUS, ErrorStyle, body_of, headers_of, status_of
from ksana.domain.errors import (
    AlreadyExists,
    ConcurrencyLimit,
    InvalidArgument,
    InvalidState,
    KsanaError,
    NotFound,
    Problem,
    StaleLease,
    StoreUnavailable,
    VersionConflict,
)


def all_kinds(kind: type[KsanaError] = KsanaError) -> Iterator[type[KsanaError]]:
    for derived in kind.__subclasses__():
        yield derived
        yield from all_kinds(derived)


def test_every_error_of_ours_has_a_status() -> None:
    # A surface may have kinds of its own, and says itself which status they have.
    rooms = ("ksana.domain.", "ksana.api.kit.")
    ours = {kind for kind in all_kinds() if kind.__module__.startswith(rooms) and kind.code != "INTERNAL"}
    assert ours
    assert {kind.code for kind in ours} <= STATUS.keys()


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        (InvalidArgument, 400),
        (kit_errors.InvalidJson, 400),
        (kit_errors.InvalidId, 400),
        (NotFound, 404),
        (AlreadyExists, 409),
        (VersionConflict, 409),
        (kit_errors.PreconditionFailed, 412),
        (InvalidState, 409),
        (ConcurrencyLimit, 409),
        (StaleLease, 409),
        (StoreUnavailable, 503),
        (kit_errors.Unauthenticated, 401),
        (kit_errors.Forbidden, 403),
        (kit_errors.MethodNotAllowed, 405),
        (kit_errors.PayloadTooLarge, 413),
        (kit_errors.UnsupportedMediaType, 415),
        (kit_errors.IdempotencyMismatch, 422),
        (kit_errors.IdempotencyInFlight, 409),
        (kit_errors.MisdirectedRequest, 421),
        (KsanaError, 500),
    ],
)
def test_each_code_has_its_status(kind: type[KsanaError], status: int) -> None:
    assert status_of(kind) == status


def test_the_member_error_is_the_code_or_the_sentence() -> None:
    error = NotFound("there is no job 5")
    assert body_of(error, ErrorStyle.CODE, "r").error == "NOT_FOUND"
    assert body_of(error, ErrorStyle.TEXT, "r").error == "there is no job 5"


def test_problems_are_shown_only_where_fields_are_at_fault() -> None:
    error = InvalidArgument([Problem("a", "is required"), Problem("", "is odd")])
    shown = body_of(error, ErrorStyle.CODE, "r")
    assert [(problem.field, problem.message) for problem in shown.problems] == [("a", "is required")]
    assert shown.message == "a: is required; is odd"
    assert body_of(NotFound("x"), ErrorStyle.CODE, "r").problems == []


def test_an_internal_error_shows_nothing_of_itself() -> None:
    shown = body_of(KsanaError("password=hunter2"), ErrorStyle.TEXT, "r")
    assert "hunter2" not in repr(shown)
    assert shown.code == "INTERNAL"


def test_an_error_carries_the_headers_its_status_calls_for() -> None:
    assert headers_of(StoreUnavailable("down")) == {"Retry-After": "1"}
    assert headers_of(kit_errors.Unauthenticated("no")) == {"WWW-Authenticate": 'Bearer realm="ksana"'}
    assert headers_of(kit_errors.MethodNotAllowed("PUT", "GET")) == {"Allow": "GET"}
    assert headers_of(NotFound("x")) == {}
