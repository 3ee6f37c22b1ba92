"""Groups of commands: the root, which imports a command when it is named, and nouns, which suggest a verb."""

from __future__ import annotations

from difflib import get_close_matches
from importlib import import_module
from typing import Any

import click


class Nouns(click.Group):
    """A group that says which command was probably meant."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        # In the order they were written down, which is the order people need them in.
        return list(self.commands)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = click.utils.make_str(args[0])
        if self.get_command(ctx, name) is None and not name.startswith("-"):
            close = get_close_matches(name, self.list_commands(ctx), 1, 0.5)
            hint = f"; did you mean {close[0]}?" if close else f"; see `{ctx.command_path} --help`"
            raise click.UsageError(f"there is no command {name!r}{hint}", ctx)
        return super().resolve_command(ctx, args)


class Root(Nouns):
    """The commands by their places: `module:name` within this package."""

    def __init__(self, *args: Any, places: dict[str, str], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._places = places

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self._places)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        place = self._places.get(name)
        if place is None:
            return None
        module, _, attribute = place.partition(":")
        found: click.Command = getattr(import_module(f"ksana.cli.{module}"), attribute)
        return found
