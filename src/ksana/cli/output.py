"""How answers are shown: tables in colour on a terminal, tab-separated lines in a pipe, JSON or bare ids when asked.

Data goes to stdout and everything else to stderr. Ids and names are never cut short, however narrow the terminal.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, tzinfo
from typing import Any, Generic, NamedTuple, TypeVar

import click

from ksana.cli.language import heading
from ksana.domain.words import Language

T = TypeVar("T")

# What a column of free text gets at least, and what stands between two columns.
_TEXT_WIDTH = 30
_GAP = 3


class Cell(NamedTuple):
    """What stands in one place of a table, and in which colour."""

    text: str
    style: str = ""


class Column(NamedTuple, Generic[T]):
    """A column: its heading, and what it shows of a row. One that is free text may be folded over several lines."""

    title: str
    show: Callable[[T], str | Cell]
    is_text: bool = False


class Out:
    """Where and how a command answers."""

    def __init__(
        self,
        *,
        as_json: bool = False,
        is_quiet: bool = False,
        language: Language = "en",
        zone: tzinfo | None = None,
        is_terminal: bool | None = None,
    ) -> None:
        self.as_json = as_json
        self.is_quiet = is_quiet
        self.language = language
        self.zone = zone
        self.is_terminal = sys.stdout.isatty() if is_terminal is None else is_terminal

    def table(
        self,
        columns: Sequence[Column[T]],
        rows: Iterable[T],
        id_of: Callable[[T], object],
        as_data: Callable[[T], Any] | None = None,
    ) -> int:
        """Show rows, and say how many there were. JSON is one document a line, so that long lists need no end."""
        count = 0
        if self.is_terminal and not self.as_json and not self.is_quiet:
            kept = list(rows)
            self._rich_table(columns, kept)
            return len(kept)
        for row in rows:
            count += 1
            self.row(columns, row, id_of, as_data)
        return count

    def row(
        self,
        columns: Sequence[Column[T]],
        row: T,
        id_of: Callable[[T], object],
        as_data: Callable[[T], Any] | None = None,
    ) -> None:
        """Show one row of a list that goes on; on a terminal in colour, without a frame."""
        if self.as_json:
            self.json(row if as_data is None else as_data(row))
        elif self.is_quiet:
            click.echo(str(id_of(row)))
        else:
            cells = [_cell(column.show(row)) for column in columns]
            if self.is_terminal:
                self._rich_line(cells)
            else:
                click.echo("\t".join(_plain(cell.text) for cell in cells))

    def fields(self, fields: Sequence[tuple[str, str | Cell]], data: Any, id: object) -> None:
        """Show one thing, a line for each of its fields; those without text are left out."""
        if self.as_json:
            self.json(data)
        elif self.is_quiet:
            click.echo(str(id))
        else:
            shown = [(name, _cell(value)) for name, value in fields if _cell(value).text]
            if self.is_terminal:
                self._rich_fields(shown)
            else:
                for name, cell in shown:
                    click.echo(f"{name}\t{_plain(cell.text)}")

    def json(self, value: Any) -> None:
        """One JSON document on a line of its own."""
        import msgspec

        click.echo(msgspec.json.encode(value).decode())
        sys.stdout.flush()

    def say(self, text: str) -> None:
        """Something for people, beside the data."""
        if not self.is_quiet:
            click.echo(text, err=True)

    def instant(self, at: datetime | None) -> str:
        """An instant on the clocks asked for, with its offset."""
        if at is None:
            return ""
        try:
            local = at.astimezone(self.zone)
        except OverflowError:
            # The last instants of the calendar, which mean never, are on no other clock.
            local = at.astimezone(UTC)
        return f"{local:%Y-%m-%d %H:%M:%S} {offset_text(local)}"

    def _rich_table(self, columns: Sequence[Column[T]], rows: list[T]) -> None:
        from rich.box import SIMPLE_HEAD
        from rich.cells import cell_len
        from rich.table import Table
        from rich.text import Text

        titles = [heading(column.title, self.language) for column in columns]
        lines = [[_cell(column.show(row)) for column in columns] for row in rows]
        table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="bold")
        needed = 0
        for place, column in enumerate(columns):
            widest = max(cell_len(text) for text in (titles[place], *(_plain(line[place].text) for line in lines)))
            # A width of its own: rich takes what does not wrap for what may be cut.
            width = min(widest, _TEXT_WIDTH) if column.is_text else widest
            table.add_column(titles[place], min_width=width, no_wrap=not column.is_text, overflow="fold")
            needed += width + _GAP
        for line in lines:
            table.add_row(*(Text(_plain(cell.text), style=cell.style) for cell in line))
        self._print(table, needed)

    def _rich_fields(self, fields: list[tuple[str, Cell]]) -> None:
        from rich.cells import cell_len
        from rich.table import Table
        from rich.text import Text

        titles = [heading(name, self.language) for name, _ in fields]
        width = max(map(cell_len, titles), default=0)
        table = Table(box=None, show_header=False, pad_edge=False)
        table.add_column(min_width=width, no_wrap=True, style="dim")
        table.add_column(overflow="fold")
        for title, (_, cell) in zip(titles, fields, strict=True):
            table.add_row(title, Text(cell.text, style=cell.style))
        self._print(table, width + _TEXT_WIDTH)

    def _rich_line(self, cells: list[Cell]) -> None:
        from rich.text import Text

        self._print(Text("  ").join(Text(_plain(cell.text), style=cell.style) for cell in cells), 0)

    def _print(self, what: Any, needed: int) -> None:
        from rich.console import Console

        # Rich cuts what does not fit; a console as wide as it takes leaves it to the terminal to wrap.
        console = Console(highlight=False, force_terminal=True)
        console.width = max(console.width, needed)
        console.print(what, soft_wrap=needed == 0)


def offset_text(local: datetime) -> str:
    """`+08:00`, or `UTC`."""
    if local.tzinfo is UTC:
        return "UTC"
    text = f"{local:%z}"
    return f"{text[:3]}:{text[3:5]}"


def _cell(value: str | Cell) -> Cell:
    return value if isinstance(value, Cell) else Cell(value)


def _plain(text: str) -> str:
    """A cell of a line: what would end it, or begin another, becomes a space."""
    return " ".join(text.split()) if any(mark in text for mark in "\t\n\r") else text
