"""The page about the command and the commands tell the same story."""

from collections.abc import Iterator
from pathlib import Path

import click

from ksana.cli import command
from ksana.cli.reference import render_cli_reference

PAGE = Path(__file__).parents[2] / "docs" / "cli.md"
# They run until they are told to stop and answer with their log, which has a form of its own.
ENDLESS = {"serve", "worker", "demo"}


def leaves(group: click.Group, path: str = "") -> Iterator[tuple[str, click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        found = group.get_command(context, name)
        assert found is not None
        if isinstance(found, click.Group):
            yield from leaves(found, f"{path}{name} ")
        else:
            yield f"{path}{name}", found


def test_the_committed_page_is_the_rendered_one() -> None:
    assert PAGE.read_text("utf-8") == render_cli_reference()


def test_every_command_that_answers_can_answer_in_json() -> None:
    dumb = [
        name
        for name, found in leaves(command)
        if name not in ENDLESS and not any("--json" in parameter.opts for parameter in found.params)
    ]
    assert dumb == []


def test_every_command_is_explained() -> None:
    mute = [name for name, found in leaves(command) if not found.help]
    assert mute == []
