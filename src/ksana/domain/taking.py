"""Takes values out of JSON that people wrote, under any of the names they may use, and notes all that is wrong."""

from __future__ import annotations

from datetime import timedelta
from enum import StrEnum
from typing import Any, TypeVar

from ksana.domain.durations import parse_duration
from ksana.domain.errors import InvalidArgument, Problem

C = TypeVar("C", bound=StrEnum)

LONGEST = timedelta(days=3650)


class Taker:
    """What is missing or wrong is answered with nothing and noted under the first of its names."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []

    def problem(self, field: str, message: str) -> None:
        self.problems.append(Problem(field, message))

    def text(self, path: str, fields: dict[str, Any], *names: str) -> str:
        given = either(fields, *names)
        if given is None:
            return ""
        if not isinstance(given, str):
            self.problem(at(path, names[0]), "must be a text")
            return ""
        return given.strip()

    def choice(self, path: str, fields: dict[str, Any], choices: type[C], *names: str) -> C | None:
        given = either(fields, *names)
        if given is None:
            return None
        try:
            return choices(given)
        except ValueError:
            self.problem(at(path, names[0]), f"must be one of {', '.join(choice.value for choice in choices)}")
            return None

    def mapping(self, path: str, fields: dict[str, Any], *names: str) -> dict[str, Any]:
        given = either(fields, *names)
        if given is None:
            return {}
        if not isinstance(given, dict):
            self.problem(at(path, names[0]), "must be an object")
            return {}
        return given

    def count(self, path: str, fields: dict[str, Any], *names: str, most: int = 1_000_000) -> int | None:
        given = either(fields, *names)
        if given is None:
            return None
        if isinstance(given, bool) or not isinstance(given, int) or not 1 <= given <= most:
            self.problem(at(path, names[0]), f"must be a whole number from 1 to {most}")
            return None
        return given

    def number(self, path: str, fields: dict[str, Any], *names: str, most: int) -> float | None:
        given = either(fields, *names)
        if given is None:
            return None
        if isinstance(given, bool) or not isinstance(given, int | float) or not 1 <= given <= most:
            self.problem(at(path, names[0]), f"must be a number from 1 to {most}")
            return None
        return float(given)

    def flag(self, path: str, fields: dict[str, Any], *names: str) -> bool:
        given = either(fields, *names)
        if given is not None and not isinstance(given, bool):
            self.problem(at(path, names[0]), "must be true or false")
        return given is True

    def span(
        self, path: str, fields: dict[str, Any], *names: str, may_be_zero: bool = False, most: timedelta = LONGEST
    ) -> timedelta | None:
        """A span of time: a number counts milliseconds, a text is a duration such as 1m30s."""
        given = either(fields, *names)
        if given is None:
            return None
        field = at(path, names[0])
        try:
            span = parse_duration(given, field) if isinstance(given, str) else _milliseconds(given)
        except InvalidArgument as error:
            self.problems += error.problems
            return None
        except (TypeError, OverflowError, ValueError):
            self.problem(field, 'must be milliseconds, or a duration such as "1m30s"')
            return None
        if not timedelta(0) <= span <= most or not (span or may_be_zero):
            least = "0s or more" if may_be_zero else "more than 0s"
            self.problem(field, f"must be {least} and at most {most.days} days")
            return None
        return span


def either(fields: dict[str, Any], *names: str) -> Any:
    """The value under the first of these names that has one."""
    for name in names:
        if (value := fields.get(name)) is not None:
            return value
    return None


def at(path: str, name: str) -> str:
    """Where a field is, as problems name it."""
    return f"{path}.{name}" if path else name


def _milliseconds(given: Any) -> timedelta:
    if isinstance(given, bool) or not isinstance(given, int | float):
        raise TypeError
    return timedelta(milliseconds=given)
