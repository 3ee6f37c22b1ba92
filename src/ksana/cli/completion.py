"""`ksana completion`: what a shell needs to complete commands, options and the names of jobs."""

from __future__ import annotations

import click

_HINTS = {
    "bash": 'eval "$(ksana completion bash)"   # in ~/.bashrc',
    "zsh": 'eval "$(ksana completion zsh)"   # in ~/.zshrc, after compinit',
    "fish": "ksana completion fish | source   # in ~/.config/fish/config.fish",
}


@click.command()
@click.argument("shell", type=click.Choice(sorted(_HINTS)))
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def completion(ctx: click.Context, shell: str, as_json: bool) -> None:
    """Print the completion script of a shell. Names of jobs are those of the server that KSANA_URL names."""
    import sys

    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    assert kind is not None
    script = kind(ctx.find_root().command, {}, "ksana", "_KSANA_COMPLETE")
    if as_json:
        import json

        click.echo(json.dumps({"shell": shell, "script": script.source()}))
        return
    click.echo(script.source())
    if sys.stdout.isatty():
        click.echo(f"# to use it: {_HINTS[shell]}", err=True)
