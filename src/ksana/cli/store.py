"""`ksana store`: what lives in a store, as a whole."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ksana.cli.groups import Nouns
from ksana.cli.options import setting_options, settings_from, start_logging
from ksana.cli.problems import INTERRUPTED
from ksana.domain.errors import AlreadyExists, InvalidArgument, InvalidState, KsanaError, NotFound, Problem

if TYPE_CHECKING:
    from ksana.config import Settings
    from ksana.stores.copy import CopyProgress, CopyReport

_LARGE = 10_000
_WIDTH = 10


@click.group(cls=Nouns)
def store() -> None:
    """Move data between stores."""


@store.command()
@click.argument("source", metavar="FROM")
@click.argument("target", metavar="TO")
@click.option("--json", "as_json", is_flag=True, help="Print what was copied as JSON.")
@click.option(
    "--force",
    is_flag=True,
    help="Copy although nodes are at work or TO holds other data; what has the same id there is left alone.",
)
@setting_options
def copy(source: str, target: str, as_json: bool, force: bool, config_path: Path | None, **flags: Any) -> None:
    """Copy everything from the store FROM to the empty store TO.

    Stop every node on either first. FROM stays as it is. A copy that was cut short goes on where it was when the same
    command is given again. Stores are named as for --store, such as sqlite:data/ksana.db or postgresql://….
    """
    origin, goal = _settings("FROM", source, config_path, flags), _settings("TO", target, config_path, flags)
    warnings = tuple(dict.fromkeys((*origin.warnings, *goal.warnings)))
    start_logging(origin.having("warnings", warnings))
    _refuse_nowhere(origin, goal)
    with _showing() as show:
        try:
            report = _copy(origin, goal, force, show)
        except KeyboardInterrupt:
            click.echo("ksana: cut short; give the same command again to go on", err=True)
            raise SystemExit(INTERRUPTED) from None
        except (AlreadyExists, InvalidState) as refusal:
            # docs/stores.md promises one code for whatever it refuses to do harm.
            raise KsanaError(refusal.message) from refusal
    _print(report, origin, goal, as_json)


def _settings(name: str, address: str, config_path: Path | None, flags: dict[str, Any]) -> Settings:
    try:
        return settings_from(config_path, store=address, **flags)
    except InvalidArgument as error:
        raise InvalidArgument(
            Problem(name, message.replace(" from flag --store", ""))
            if field == "storage.url"
            else Problem(field, message)
            for field, message in error.problems
        ) from None


def _refuse_nowhere(origin: Settings, goal: Settings) -> None:
    """Opening a file that is not there would make one, and an empty store would be copied."""
    from ksana.config.urls import JSON_FILE

    url = origin.storage.url
    if url == goal.storage.url:
        raise InvalidArgument.of("TO", "is the same store as FROM")
    scheme, _, rest = url.partition(":")
    path = Path("/" + rest.lstrip("/"))
    file = path / JSON_FILE if scheme == "json" else path
    if scheme in ("sqlite", "json") and not file.exists():
        raise NotFound(f"FROM: there is nothing at {url}")


def _copy(origin: Settings, goal: Settings, force: bool, show: Callable[[CopyProgress], None]) -> CopyReport:
    import asyncio
    from contextlib import AsyncExitStack
    from datetime import UTC, datetime

    from ksana.app import store_of
    from ksana.stores.copy import copy

    async def go() -> CopyReport:
        source, target = store_of(origin), store_of(goal)
        async with AsyncExitStack() as stack:
            for store in (source, target):
                await store.open()
                stack.push_async_callback(store.close)
            return await copy(source, target, datetime.now(UTC), show, force=force)

    return asyncio.run(go())


@contextmanager
def _showing() -> Iterator[Callable[[CopyProgress], None]]:
    """Somewhere to tell progress: bars on a terminal, else lines."""
    if not sys.stderr.isatty():
        yield _Lines().show
        return
    bars = _Bars()
    try:
        yield bars.show
    finally:
        bars.close()


class _Lines:
    """A line when a section is done, and on the way after every tenth of a large one."""

    def __init__(self) -> None:
        self._last: tuple[str, int] | None = None

    def show(self, progress: CopyProgress) -> None:
        tenths = 10 * progress.done // progress.total if progress.total >= _LARGE or progress.is_done else 0
        if tenths and self._last != (progress.section, tenths):
            self._last = (progress.section, tenths)
            click.echo(f"{progress.section.value}: {progress.done} of {progress.total}", err=True)


class _Bars:
    """One bar after the other."""

    def __init__(self) -> None:
        self._section = ""
        self._bar: Any = None

    def show(self, progress: CopyProgress) -> None:
        if progress.total == 0:
            return
        if progress.section != self._section:
            self.close()
            self._section = progress.section
            label = f"{progress.section.value:<{_WIDTH}}"
            self._bar = click.progressbar(
                length=progress.total, label=label, show_pos=True, show_percent=True, file=sys.stderr
            )
            self._bar.__enter__()
        self._bar.update(progress.done - self._bar.pos)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.__exit__(None, None, None)
            self._bar = None


def _print(report: CopyReport, origin: Settings, goal: Settings, as_json: bool) -> None:
    from ksana.config import mask_url

    source, target = mask_url(origin.storage.url), mask_url(goal.storage.url)
    if as_json:
        sections = {one.section.value: {"copied": one.copied, "present": one.present} for one in report.sections}
        click.echo(json.dumps({"from": source, "to": target, "resumed": report.resumed, "sections": sections}))
        return
    click.echo(f"{'':<{_WIDTH}} {'copied':>12} {'already there':>14}")
    for one in report.sections:
        click.echo(f"{one.section.value:<{_WIDTH}} {one.copied:>12} {one.present:>14}")
    went_on = ", going on where an earlier copy was cut short" if report.resumed else ""
    click.echo(f"copied {source} to {target}{went_on}", err=True)
