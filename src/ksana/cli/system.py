"""`ksana health`, `api` and `version`: is it there, ask it anything, which is it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

import ksana
from ksana.cli.asking import asked, shown
from ksana.cli.output import Out
from ksana.cli.problems import BAD_ANSWER
from ksana.cli.values import json_of, pairs_of

if TYPE_CHECKING:
    from ksana.client import Client


@click.command()
@click.option("--ready", "is_ready", is_flag=True, help="Also ask whether its store answers.")
@asked
def health(is_ready: bool, server: Client, out: Out) -> None:
    """Say whether the server lives; exits with 5 if it does not answer, 1 if it is not ready."""
    from ksana.client import Unavailable

    try:
        answer = server.ask("GET", "/readyz" if is_ready else "/healthz")
    except Unavailable as error:
        if error.status != 503 or not is_ready:
            raise
        out.say(f"ksana: {error.message}")
        raise SystemExit(BAD_ANSWER) from None
    if out.as_json:
        out.json(answer if isinstance(answer, dict) else {"status": str(answer).strip()})
    else:
        click.echo("ready" if is_ready else "ok")


@click.command()
@click.argument("method")
@click.argument("path")
@click.option("-d", "--data", help="JSON body; @FILE reads a file, - stdin.")
@click.option("-H", "--header", "headers", multiple=True, help='"Name: value"; may be repeated.')
@asked
def api(method: str, path: str, data: str | None, headers: tuple[str, ...], server: Client, out: Out) -> None:
    """Make any request: `ksana api GET /api/v2/jobs`, with the server and key of every command.

    The answer is printed as JSON, indented on a terminal. A refusal is printed too, and its exit code is that of any
    command.
    """
    body = json_of(data, "--data")
    answer: Any = server.ask(
        method, path if path.startswith("/") else f"/{path}", body, headers=pairs_of(headers, "--header", ":")
    )
    if answer is None:
        return
    if isinstance(answer, str):
        click.echo(answer, nl=not answer.endswith("\n"))
    elif out.is_terminal and not out.as_json:
        import json

        click.echo(json.dumps(answer, indent=2, ensure_ascii=False))
    else:
        out.json(answer)


@click.command()
@shown
def version(out: Out) -> None:
    """Print the version."""
    if out.as_json:
        out.json({"version": ksana.__version__})
    else:
        click.echo(ksana.__version__)
