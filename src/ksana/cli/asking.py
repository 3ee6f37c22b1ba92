"""What the commands share: how they answer, and the server they ask."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import click

from ksana.cli.output import Out
from ksana.domain.errors import InvalidArgument

if TYPE_CHECKING:
    from ksana.client import Client

F = TypeVar("F", bound=Callable[..., Any])

_SHOWN = (
    click.option("--json", "as_json", is_flag=True, help="Print JSON, one document a line."),
    click.option("-q", "--quiet", "is_quiet", is_flag=True, help="Print ids only."),
    click.option("--lang", "language", type=click.Choice(["en", "zh"]), help="Language (default: that of the locale)."),
    click.option("--tz", "zone_name", help="Zone to show instants in (default: that of this machine)."),
)
_SERVED = (
    click.option("--url", help="The server (KSANA_URL, else http://127.0.0.1:7100)."),
    click.option("--key", "--token", "key", help="The API key (KSANA_KEY)."),
)
# A person waits: what does not answer at once is tried twice more, not for half a minute.
_RETRIES = 2


def shown(function: F) -> F:
    """Give a command the options that say how to answer; it is told them as `out`."""

    @wraps(function)
    def command(*args: Any, **kwargs: Any) -> Any:
        return function(*args, out=_out(kwargs), **kwargs)

    return _with_options(command, _SHOWN)  # type: ignore[return-value]


def asked(function: F) -> F:
    """The same for a command that asks a server; it is told the client as `server`."""

    @wraps(function)
    def command(*args: Any, **kwargs: Any) -> Any:
        out = _out(kwargs)
        with connected(kwargs.pop("url"), kwargs.pop("key")) as server:
            return function(*args, out=out, server=server, **kwargs)

    return _with_options(command, (*_SHOWN, *_SERVED))  # type: ignore[return-value]


def connected(url: str | None, key: str | None, retries: int = _RETRIES) -> Client:
    """A client of the server that the options or the environment name."""
    from ksana.client import Client

    return Client(url, key, retries=retries)


def confirmed(out: Out, is_yes: bool, question: str) -> None:
    """Ask before something is lost. Who cannot be asked has to say --yes."""
    if not agreed(is_yes, question):
        _leave(out)


def agreed(is_yes: bool, question: str) -> bool:
    """Whether somebody wants it, for what can be left out."""
    if is_yes:
        return True
    _refuse_if_alone(question)
    return click.confirm(question, err=True)


def confirmed_by_name(out: Out, is_yes: bool, question: str, name: str) -> None:
    """The same for what cannot be undone: whoever means it types the name."""
    if is_yes:
        return
    _refuse_if_alone(question)
    if click.prompt(f"{question} Type {name} to have it done", default="", show_default=False, err=True) != name:
        _leave(out)


def _refuse_if_alone(question: str) -> None:
    import sys

    if not sys.stdin.isatty():
        raise InvalidArgument.of("--yes", f"{question} Nobody can be asked here; say --yes to have it done.")


def _leave(out: Out) -> NoReturn:
    out.say("nothing was done")
    raise SystemExit(1)


def _out(options: dict[str, Any]) -> Out:
    from ksana.cli.language import language_of

    zone_name = options.pop("zone_name")
    zone = None
    if zone_name is not None:
        from ksana.domain.times import zone as zone_of

        zone = zone_of(zone_name, "--tz")
    return Out(
        as_json=options.pop("as_json"),
        is_quiet=options.pop("is_quiet"),
        language=options.pop("language") or language_of(),
        zone=zone,
    )


def _with_options(command: Callable[..., Any], options: tuple[Any, ...]) -> Callable[..., Any]:
    for option in reversed(options):
        command = option(command)
    return command
