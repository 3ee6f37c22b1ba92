"""Options shared by the commands that need settings."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from ksana.config import Settings

F = TypeVar("F", bound=Callable[..., Any])

_CONFIG = click.option("--config", "config_path", type=click.Path(path_type=Path), help="YAML file with settings.")
_STORE = click.option(
    "--store", help="Where the data lives: sqlite:PATH, json:DIR, postgresql://…, mysql://…, redis://…"
)
_OTHERS = (
    click.option("--data-dir", help="Directory of the embedded store (default ./data)."),
    click.option("--log-level", help="debug, info, warning or error."),
    click.option("--log-format", help="auto, json or text."),
)


def store_options(function: F) -> F:
    """The options that say which store and how to log."""
    return _with(function, _CONFIG, _STORE, *_OTHERS)


def setting_options(function: F) -> F:
    """The same for a command that is told its stores in another way."""
    return _with(function, _CONFIG, *_OTHERS)


def _with(function: F, *options: Callable[[F], F]) -> F:
    for option in reversed(options):
        function = option(function)
    return function


def settings_from(config_path: Path | None, **flags: Any) -> Settings:
    """Settings by flag, environment, file and default; what they warn of goes to the log."""
    from ksana.config import environment, load_settings

    return load_settings(flags, environment(), config_path, Path.cwd())


def start_logging(settings: Settings) -> None:
    """Logs to stderr, as the settings say."""
    from ksana.process import start_logging

    start_logging(settings)
