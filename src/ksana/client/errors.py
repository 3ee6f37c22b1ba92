"""What can go wrong between a program and its server, as exceptions that say what to do.

KsanaError
└── ClientError
    ├── Unreachable       no answer; `maybe_done` says whether the server may have done it nevertheless
    ├── StillRunning      a run was not over in the time given; `run` is how it stood
    └── ApiError          the server said no: `status`, `code`, `problems`, `request_id`
        ├── Invalid       the request is wrong
        ├── NotAllowed    the key is missing, unknown, or may not do this
        ├── NotFound      nothing has that id
        ├── Conflict      somebody was quicker, or the state does not allow it
        └── Unavailable   the server cannot now; `retry_after` is in seconds, if it said so
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ksana.domain.errors import KsanaError, Problem

if TYPE_CHECKING:
    from ksana.client.results import Run


class ClientError(KsanaError):
    """Base of every error a client raises."""


class Unreachable(ClientError):
    """The server gave no answer, or none that could be read."""

    def __init__(self, message: str, *, maybe_done: bool) -> None:
        super().__init__(message)
        self.maybe_done = maybe_done


class StillRunning(ClientError):
    """The run was not over in the time given. It goes on."""

    def __init__(self, run: Run) -> None:
        super().__init__(f"run {run.id} is still {run.state}")
        self.run = run


class ApiError(ClientError):
    """The server said no."""

    def __init__(
        self,
        message: str,
        *,
        status: int,
        code: str,
        problems: Sequence[Problem] = (),
        request_id: str = "",
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        # Each answer has its own, where other errors have one for their class.
        self.code = code  # type: ignore[misc]
        self.problems = list(problems)
        self.request_id = request_id
        self.retry_after = retry_after

    def __str__(self) -> str:
        where = f" (request {self.request_id})" if self.request_id else ""
        return f"{self.status} {self.code}: {self.message}{where}"


class Invalid(ApiError):
    """The request is wrong; `problems` names the fields."""


class NotAllowed(ApiError):
    """The key is missing, unknown, or may not do this."""


class NotFound(ApiError):
    """Nothing has that id."""


class Conflict(ApiError):
    """Somebody was quicker, or the state does not allow it."""


class Unavailable(ApiError):
    """The server cannot now; later it may."""
