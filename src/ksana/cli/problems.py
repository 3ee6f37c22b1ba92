"""How a command fails: a sentence on stderr that names the fix, and an exit code a script can tell apart."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

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

BAD_ANSWER = 1
USAGE = 2
NOT_FOUND = 3
CONFLICT = 4
UNREACHABLE = 5
NOT_ALLOWED = 6
STILL_RUNNING = 7
PARTLY_FAILED = 8
BUG = 70
INTERRUPTED = 130

_CODES: tuple[tuple[type[KsanaError], int], ...] = (
    (InvalidArgument, USAGE),
    (NotFound, NOT_FOUND),
    (StoreUnavailable, UNREACHABLE),
    (AlreadyExists, CONFLICT),
    (VersionConflict, CONFLICT),
    (InvalidState, CONFLICT),
    (ConcurrencyLimit, CONFLICT),
    (StaleLease, CONFLICT),
)


class PartlyFailed(KsanaError):
    """Some of many could not be done; which, was said already."""

    code = "PARTLY_FAILED"


@contextmanager
def showing_problems(as_json: bool = False) -> Iterator[None]:
    """Turn errors meant for people into their sentence and exit code."""
    try:
        yield
    except click.ClickException as error:
        if as_json:
            _print_json({"code": "USAGE", "message": error.format_message()})
        error.show()
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        click.echo("", err=True)
        sys.exit(INTERRUPTED)
    except KsanaError as error:
        if as_json:
            _print_json(document(error))
        for line in sentences(error):
            click.echo(f"ksana: {line}", err=True)
        sys.exit(exit_code_of(error))
    except BrokenPipeError:
        # Whoever read has seen enough; what is still buffered must not complain at the end either.
        sys.stderr.close()
        sys.exit(0)
    except Exception as error:
        import traceback

        traceback.print_exc()
        click.echo(f"ksana: this is a bug, please report it with the lines above: {error}", err=True)
        sys.exit(BUG)


def exit_code_of(error: KsanaError) -> int:
    """The exit code that tells this kind of error apart."""
    from ksana.client import errors

    if isinstance(error, PartlyFailed):
        return PARTLY_FAILED
    of_clients: tuple[tuple[type[KsanaError], int], ...] = (
        (errors.StillRunning, STILL_RUNNING),
        (errors.NotFound, NOT_FOUND),
        (errors.Conflict, CONFLICT),
        (errors.NotAllowed, NOT_ALLOWED),
        (errors.Invalid, USAGE),
        (errors.Unavailable, UNREACHABLE),
        (errors.Unreachable, UNREACHABLE),
    )
    return next((code for kind, code in (*_CODES, *of_clients) if isinstance(error, kind)), BAD_ANSWER)


def sentences(error: KsanaError) -> list[str]:
    """What went wrong, a line for each field at fault."""
    from ksana.client.errors import NotAllowed, Unreachable

    problems: list[Problem] = getattr(error, "problems", [])
    if problems:
        return [f"{problem.field}: {problem.message}" if problem.field else problem.message for problem in problems]
    if isinstance(error, NotAllowed):
        return [f"{error.message}; give a key with --key or KSANA_KEY (made by `ksana key create`)"]
    if isinstance(error, Unreachable):
        return [f"{error.message}; start a server with `ksana serve`, or name one with --url or KSANA_URL"]
    return [error.message]


def document(error: KsanaError) -> dict[str, Any]:
    """The error as the API would write it."""
    problems: list[Problem] = getattr(error, "problems", [])
    request_id = getattr(error, "request_id", "")
    return {
        "error": error.message,
        "code": _word_of(error),
        "message": error.message,
        **({"problems": [problem._asdict() for problem in problems]} if problems else {}),
        **({"request_id": request_id} if request_id else {}),
    }


def _word_of(error: KsanaError) -> str:
    """The code of the API, or one for what only a client can meet."""
    from ksana.client.errors import StillRunning, Unreachable

    if isinstance(error, Unreachable):
        return "UNREACHABLE"
    return "STILL_RUNNING" if isinstance(error, StillRunning) else error.code


def _print_json(value: dict[str, Any]) -> None:
    import json

    click.echo(json.dumps(value, ensure_ascii=False))
