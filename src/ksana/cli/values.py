"""Values as arguments: JSON given in place, from a file or from stdin."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from ksana.domain.errors import InvalidArgument, NotFound


def text_of(given: str, field: str) -> str:
    """The text itself, that of `@FILE`, or what stdin has for `-` or `@-`."""
    if given in ("-", "@-"):
        return sys.stdin.read()
    if not given.startswith("@"):
        return given
    return file_text(given[1:], field)


def file_text(path: str, field: str) -> str:
    """The text of a file, or of stdin for `-`."""
    if path == "-":
        return sys.stdin.read()
    try:
        return Path(path).read_text("utf-8")
    except FileNotFoundError:
        raise NotFound(f"{field}: there is no file {path}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidArgument.of(field, f"cannot read {path}: {error}") from None


def json_of(given: str | None, field: str) -> Any:
    """The JSON value of an argument; None if there is none."""
    import json

    if given is None:
        return None
    try:
        return json.loads(text_of(given, field))
    except ValueError as error:
        raise InvalidArgument.of(field, f"is no JSON: {error}; quote it for the shell, or write @FILE") from None


def pairs_of(given: tuple[str, ...], field: str, mark: str) -> dict[str, str]:
    """`Name: value` or `name=value` as a mapping."""
    found = {}
    for text in given:
        name, between, value = text.partition(mark)
        if not between or not name.strip():
            raise InvalidArgument.of(field, f"{text!r} is not of the form name{mark} value")
        found[name.strip()] = value.strip()
    return found
