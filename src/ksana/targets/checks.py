"""What every config check needs: is the field known, what was probably meant, and how to refuse."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any

import msgspec

from ksana.domain.errors import InvalidArgument, Problem


def unknown_fields(kind: str, config: Mapping[str, Any], known: tuple[str, ...]) -> list[Problem]:
    """A problem for every field the target would not honour; InvalidArgument if the config is no map."""
    refuse_no_map(kind, config)
    takes = f"it takes {', '.join(known)}" if known else "it takes none"
    return [
        Problem(str(name), f"is not a field of the {kind} target; {takes}{did_you_mean(str(name), known)}")
        for name in config
        if name not in known
    ]


def refuse_no_map(kind: str, config: object) -> None:
    if not isinstance(config, Mapping):
        raise InvalidArgument.of(
            "target", f"the config of a {kind} target is a map of fields, not {type(config).__name__}"
        )


def refuse(problems: list[Problem]) -> None:
    """InvalidArgument if there are problems, their fields named as the author of a job wrote them."""
    if problems:
        raise InvalidArgument(Problem(f"target.{field}", message) for field, message in problems)


def did_you_mean(word: str, options: Iterable[str]) -> str:
    """`; did you mean …?` or nothing, to be put behind a complaint about `word`."""
    near = get_close_matches(word, options, n=1)
    return f"; did you mean {near[0]!r}?" if near else ""


def not_json(field: str, value: object) -> list[Problem]:
    """A problem if the value could not be stored: configs live in the store as JSON."""
    try:
        msgspec.json.encode(value)
    except (TypeError, ValueError, OverflowError, RecursionError, msgspec.MsgspecError) as error:
        return [Problem(field, f"holds what JSON cannot: {error}")]
    return []
