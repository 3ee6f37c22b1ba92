"""Settings by key, flag and variable, and the nearest known name for a mistyped one."""

from __future__ import annotations

from difflib import get_close_matches

from ksana.config.fields import FIELDS

BY_KEY = {key: field for field in FIELDS for key in field.keys}
BY_FLAG = {field.flag: field for field in FIELDS if field.flag}
KSANA_NAMES = frozenset(name for field in FIELDS for name in field.env)
SECTIONS = frozenset(
    ".".join(parts[:depth]) for parts in (key.split(".") for key in BY_KEY) for depth in range(1, len(parts))
)


def did_you_mean(key: str) -> str:
    """A hint for an unknown dotted key, or nothing."""
    last = key.rpartition(".")[2]
    namesakes = [known for known in BY_KEY if known.rpartition(".")[2] == last]
    matches = get_close_matches(key, [*BY_KEY, *sorted(SECTIONS)], 1, 0.7) or namesakes[:1]
    leaves = {known.rpartition(".")[2]: known for known in BY_KEY}
    matches = matches or [leaves[leaf] for leaf in get_close_matches(last, leaves, 1, 0.7)]
    return hint(matches)


def hint(matches: list[str]) -> str:
    return f"; did you mean {matches[0]}?" if matches else ""
