"""How a command fails: a sentence on stderr that names the fix, and an exit code a script can tell apart."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import click

from ksana.domain.errors import InvalidArgument, KsanaError, NotFound, StoreUnavailable

BAD_ANSWER = 1
USAGE = 2
NOT_FOUND = 3
UNREACHABLE = 5
INTERRUPTED = 130


@contextmanager
def showing_problems() -> Iterator[None]:
    """Turn errors meant for people into their sentence and exit code."""
    try:
        yield
    except InvalidArgument as error:
        for problem in error.problems:
            click.echo(
                f"ksana: {problem.field}: {problem.message}" if problem.field else f"ksana: {problem.message}", err=True
            )
        sys.exit(USAGE)
    except NotFound as error:
        click.echo(f"ksana: {error}", err=True)
        sys.exit(NOT_FOUND)
    except StoreUnavailable as error:
        click.echo(f"ksana: {error}", err=True)
        sys.exit(UNREACHABLE)
    except KsanaError as error:
        click.echo(f"ksana: {error}", err=True)
        sys.exit(BAD_ANSWER)
