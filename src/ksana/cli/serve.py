"""`ksana serve` and `ksana worker`: a node, with and without its HTTP server."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ksana.cli.options import settings_from, start_logging, store_options
from ksana.domain.errors import InvalidArgument, KsanaError

if TYPE_CHECKING:
    import asyncio

_FUNCTIONS_HELP = "MODULE:NAME of a mapping from names to Python functions that `python` jobs may call."


@click.command()
@click.option("--host", help="Address to listen on (default 127.0.0.1).")
@click.option("--port", help="Port to listen on (default 7100); 0 picks a free one.")
@click.option("--base-path", help="Path under which a proxy serves Ksana.")
@click.option("--workers", help="Runs executed at once (default 4).")
@click.option("--insecure", is_flag=True, default=None, help="Listen beyond loopback without an API key.")
@click.option("--functions", help=_FUNCTIONS_HELP)
@store_options
def serve(functions: str | None, config_path: Path | None, **flags: Any) -> None:
    """Start a server: schedules, workers and the HTTP API in one process."""
    settings = settings_from(config_path, **flags)
    start_logging(settings)
    from ksana.app import serve as serve_node

    found = _mapping(functions, _found(functions))
    run_node(lambda stop: serve_node(settings, stop, found))


@click.command()
@click.argument("functions", required=False)
@click.option("--queue", "queues", multiple=True, help="Queue to work for (default: default); may be repeated.")
@click.option("--workers", help="Runs executed at once, and items of each queue (default 4).")
@store_options
def worker(functions: str | None, queues: tuple[str, ...], config_path: Path | None, **flags: Any) -> None:
    """Start a node without an HTTP server, which shares the work of the store.

    FUNCTIONS is MODULE:NAME of an app, `app = Ksana(…)`, whose jobs and handlers are run where it keeps them, unless
    options say otherwise; with --queue, only those of these queues.

    Or it is a mapping from names to Python functions that `python` jobs may call. They also see to the items that wait
    in the queues: the one called like an item's type does it, else the one called like its queue.
    """
    from ksana.embedded import Ksana

    found = _found(functions)
    if isinstance(found, Ksana):
        found.work(*queues, config=config_path, **flags)
        return
    settings = settings_from(config_path, **flags)
    start_logging(settings)
    from ksana.app import work

    mapping = _mapping(functions, found)
    run_node(lambda stop: work(settings, stop, mapping, queues))


def _found(reference: str | None) -> Any:
    if reference is None:
        return {}
    import importlib
    import sys
    import traceback

    module, _, name = reference.partition(":")
    # The program's own modules live where it is started, as with `python -m`.
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise InvalidArgument.of("functions", f"cannot load {reference!r}: {error}") from error
    except Exception as error:
        # Whatever it is, it is the program's.
        traceback.print_exc()
        raise InvalidArgument.of("functions", f"cannot load {reference!r}: {type(error).__name__}: {error}") from error


def _mapping(reference: str | None, found: Any) -> Mapping[str, Callable[..., Any]]:
    if not isinstance(found, Mapping):
        raise InvalidArgument.of("functions", f"{reference} is not a mapping from names to functions")
    return found


def run_node(main: Callable[[asyncio.Event], Coroutine[Any, Any, None]]) -> None:
    """Run a node until it is told to stop; KsanaError if its port is taken."""
    from ksana.app import PortTaken
    from ksana.process import run_until_told

    try:
        run_until_told(main)
    except PortTaken as error:
        raise KsanaError(str(error)) from error
