"""Errors as HTTP shows them: one body everywhere, one table from code to status.

KsanaError
└── ApiError                 what only HTTP can get wrong
    ├── InvalidJson          INVALID_JSON            the body is not the JSON we take
    ├── InvalidId            INVALID_ID              an id in the path has the wrong form
    ├── Unauthenticated      UNAUTHENTICATED         no key, or not one we know
    ├── Forbidden            FORBIDDEN               the key lacks the scope, or a foreign page is calling
    ├── MethodNotAllowed     METHOD_NOT_ALLOWED      the path exists, the method does not
    ├── PreconditionFailed   VERSION_CONFLICT        If-Match names another version
    ├── IdempotencyInFlight  IDEMPOTENCY_IN_FLIGHT   the first request with this key is still running
    ├── IdempotencyMismatch  IDEMPOTENCY_MISMATCH    the key was used for another request
    ├── MisdirectedRequest   MISDIRECTED_REQUEST     the Host header names a machine we are not
    ├── PayloadTooLarge      PAYLOAD_TOO_LARGE       the body is over the limit
    └── UnsupportedMediaType UNSUPPORTED_MEDIA_TYPE  the body is not sent as JSON

An exception of any other kind is a fault of ours: its text goes to the log, never to the caller.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import ClassVar, Final

import msgspec

from ksana.domain.errors import InvalidArgument, KsanaError, Problem

STATUS: Final[Mapping[str, int]] = {
    "INVALID_ARGUMENT": 400,
    "INVALID_JSON": 400,
    "INVALID_ID": 400,
    "UNAUTHENTICATED": 401,
    "FORBIDDEN": 403,
    "NOT_FOUND": 404,
    "METHOD_NOT_ALLOWED": 405,
    "ALREADY_EXISTS": 409,
    "VERSION_CONFLICT": 409,
    "INVALID_STATE": 409,
    "CONCURRENCY_LIMIT": 409,
    "STALE_LEASE": 409,
    "VERIFY_CAP_REACHED": 409,
    "IDEMPOTENCY_IN_FLIGHT": 409,
    "PAYLOAD_TOO_LARGE": 413,
    "UNSUPPORTED_MEDIA_TYPE": 415,
    "MISDIRECTED_REQUEST": 421,
    "IDEMPOTENCY_MISMATCH": 422,
    "INTERNAL": 500,
    "STORE_UNAVAILABLE": 503,
}
INTERNAL_MESSAGE: Final = "something went wrong on our side; the log has it under this request_id"


class ErrorStyle(Enum):
    """What a surface puts into the member `error`: the stable code, or the sentence."""

    CODE = "code"
    TEXT = "text"


class FieldProblem(msgspec.Struct, frozen=True):
    """One field at fault, as it is shown."""

    field: str
    message: str


class ErrorBody(msgspec.Struct, frozen=True, omit_defaults=True):
    """The one error body of every surface."""

    error: str
    code: str
    message: str
    request_id: str
    problems: list[FieldProblem] = []


class ApiError(KsanaError):
    """An error that exists only because we speak HTTP."""

    http_status: ClassVar[int | None] = None

    def __init__(self, message: str, problems: Iterable[Problem] = ()) -> None:
        super().__init__(message)
        self.problems = list(problems)

    def headers(self) -> dict[str, str]:
        """Headers the status calls for."""
        return {}


class InvalidJson(ApiError):
    """The body is not the JSON we take."""

    code = "INVALID_JSON"


class InvalidId(ApiError):
    """An id in the path has the wrong form."""

    code = "INVALID_ID"

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"{field}: {message}", [Problem(field, message)])


class Unauthenticated(ApiError):
    """No key, or not one we know."""

    code = "UNAUTHENTICATED"

    def headers(self) -> dict[str, str]:
        return {"WWW-Authenticate": 'Bearer realm="ksana"'}


class Forbidden(ApiError):
    """The key lacks the scope, or a foreign page is calling."""

    code = "FORBIDDEN"


class MethodNotAllowed(ApiError):
    """The path exists, the method does not."""

    code = "METHOD_NOT_ALLOWED"

    def __init__(self, method: str, allow: str) -> None:
        super().__init__(f"{method} is not possible here; use one of {allow}")
        self.allow = allow

    def headers(self) -> dict[str, str]:
        return {"Allow": self.allow}


class PreconditionFailed(ApiError):
    """If-Match names another version than the stored one."""

    code = "VERSION_CONFLICT"
    http_status = 412


class IdempotencyInFlight(ApiError):
    """The first request with this key is still running."""

    code = "IDEMPOTENCY_IN_FLIGHT"

    def headers(self) -> dict[str, str]:
        return {"Retry-After": "1"}


class IdempotencyMismatch(ApiError):
    """The key was used for another request."""

    code = "IDEMPOTENCY_MISMATCH"


class MisdirectedRequest(ApiError):
    """The Host header names a machine we are not."""

    code = "MISDIRECTED_REQUEST"


class PayloadTooLarge(ApiError):
    """The body is over the limit."""

    code = "PAYLOAD_TOO_LARGE"


class UnsupportedMediaType(ApiError):
    """The body is not sent as JSON."""

    code = "UNSUPPORTED_MEDIA_TYPE"


def status_of(error: KsanaError | type[KsanaError]) -> int:
    """The HTTP status of an error, or of a class of errors."""
    own = getattr(error, "http_status", None)
    return own or STATUS.get(error.code, 500)


def headers_of(error: KsanaError) -> dict[str, str]:
    """The headers an error answer carries besides the usual ones."""
    if isinstance(error, ApiError):
        return error.headers()
    return {"Retry-After": "1"} if status_of(error) == 503 else {}


def body_of(error: KsanaError, style: ErrorStyle, request_id: str) -> ErrorBody:
    """The body shown for an error on a surface of this style."""
    internal = status_of(error) == 500
    code = "INTERNAL" if internal else error.code
    message = INTERNAL_MESSAGE if internal else error.message
    problems = error.problems if isinstance(error, ApiError | InvalidArgument) else []
    return ErrorBody(
        error=code if style is ErrorStyle.CODE else message,
        code=code,
        message=message,
        request_id=request_id,
        problems=[FieldProblem(p.field, p.message) for p in problems if p.field],
    )
