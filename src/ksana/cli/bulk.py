"""The same done to many: a bar while it lasts, a line for what could not be done, and an exit code that says so.

What was named is done one by one from here. What a filter finds is the server's to do, as an operation that is followed
from here and ends when whoever began it presses Ctrl-C.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ksana.cli.asking import confirmed
from ksana.cli.looks import state_cell
from ksana.cli.output import Cell, Column, Out
from ksana.cli.problems import PartlyFailed
from ksana.domain.errors import KsanaError

if TYPE_CHECKING:
    from ksana.client import Client
    from ksana.client.operations import Action
    from ksana.client.results import Operation, Subject

T = TypeVar("T")
Sleep = Callable[[float], None]

_FEW = 3
_FIRST_LOOK = 0.02
_LONGEST_LOOK = 0.5


def done_to(out: Out, items: Sequence[T], act: Callable[[T], object], name_of: Callable[[T], str]) -> None:
    """Do it to each. What fails does not keep the others from being done; of one alone the error is its own."""
    if len(items) == 1:
        act(items[0])
        return
    failed = 0
    for item in _with_bar(items):
        try:
            act(item)
        except KsanaError as error:
            failed += 1
            out.say(f"ksana: {name_of(item)}: {error.message}")
    if failed:
        raise PartlyFailed(f"{failed} of {len(items)} could not be done")


class Filtered:
    """An action on all jobs or runs that a filter finds; `noun` is what they are."""

    def __init__(
        self,
        server: Client,
        out: Out,
        action: Action,
        noun: str,
        filter: dict[str, Any],
        *,
        reason: str = "",
        until: str | None = None,
        listing: str = "",
    ) -> None:
        self._server = server
        self._out = out
        self._action: Action = action
        self._noun = noun
        self._said: dict[str, Any] = {"reason": reason, "until": until}
        self._listing = listing or f"ksana {noun}s list"
        self._filter = {name: value for name, value in filter.items() if value not in (None, "", [])}

    def ask_and_carry_out(self, is_yes: bool, is_dry: bool) -> None:
        """Do it once somebody who was told how many has said yes, or only show what it would be done to."""
        if is_dry:
            self.show_plan()
            return
        if not is_yes and (total := self.plan().total):
            confirmed(self._out, is_yes, f"{self._action.title()} {total} {self._noun}(s)?")
        self.carry_out()

    def plan(self) -> Operation:
        """What it would be done to."""
        return self._server.operations.begin(self._action, filter=self._filter, **self._said, dry_run=True)

    def show_plan(self) -> None:
        plan, out = self.plan(), self._out
        if out.as_json:
            out.json(plan)
        else:
            out.table(_subject_columns(out), plan.sample, lambda one: one.id)
        if plan.total > len(plan.sample):
            # Also to whoever wants ids only: these are not all of them.
            click.echo(f"these are the first {len(plan.sample)}; `{self._listing}` shows all", err=True)
        out.say(f"would {self._action} {plan.total} {self._noun}(s); nothing was done")

    def carry_out(self, sleep: Sleep = time.sleep) -> Operation:
        """Have the server do it, and stay until it is done. PartlyFailed unless it was done to all."""
        begun = self._server.operations.begin(self._action, filter=self._filter, **self._said)
        if begun.total == 0:
            self._out.say(f"no {self._noun} fits")
        try:
            over = self._followed(begun, sleep)
        except KeyboardInterrupt:
            over = self._server.operations.cancel(begun)
            self._out.say(f"called off after {over.done} of {over.total}; what was done stays done")
            raise
        self._out.row(_operation_columns(), over, lambda one: one.id)
        for error in over.errors:
            self._out.say(f"ksana: {self._noun} {error.id}: {error.message}")
        if over.failed > len(over.errors):
            self._out.say(f"ksana: and {over.failed - len(over.errors)} more")
        if over.done < over.total:
            why = "could not be done" if over.state == "done" else "were not done: somebody called it off"
            raise PartlyFailed(f"{over.total - over.done} of {over.total} {why}")
        return over

    def _followed(self, operation: Operation, sleep: Sleep) -> Operation:
        if operation.total <= _FEW or not sys.stderr.isatty():
            return self._looked_at(operation, sleep, lambda seen: None)
        with click.progressbar(length=operation.total, label=self._action, file=sys.stderr, show_pos=True) as bar:
            return self._looked_at(operation, sleep, lambda seen: bar.update(seen.done + seen.failed - bar.pos))

    def _looked_at(self, operation: Operation, sleep: Sleep, show: Callable[[Operation], None]) -> Operation:
        pause = _FIRST_LOOK
        while operation.state == "running":
            sleep(pause)
            pause = min(2 * pause, _LONGEST_LOOK)
            operation = self._server.operations.get(operation)
            show(operation)
        return operation


def _subject_columns(out: Out) -> list[Column[Subject]]:
    return [
        Column("id", lambda one: str(one.id)),
        Column("name", lambda one: Cell(one.name or "", "bold")),
        Column("state", lambda one: "" if one.state is None else state_cell(one.state, out)),
    ]


def _operation_columns() -> list[Column[Operation]]:
    return [
        Column("action", lambda one: one.action),
        Column("state", lambda one: one.state or ""),
        Column("done", lambda one: Cell(f"{one.done} done", "green")),
        Column("failed", lambda one: Cell(f"{one.failed} failed", "red" if one.failed else "")),
        Column("operation", lambda one: f"operation {one.id}"),
    ]


def _with_bar(items: Sequence[T]) -> Iterable[T]:
    if len(items) <= _FEW or not sys.stderr.isatty():
        yield from items
        return
    with click.progressbar(items, file=sys.stderr, show_pos=True) as bar:
        yield from bar
