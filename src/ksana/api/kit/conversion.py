"""From decoded JSON to a typed value, and on failure every problem at once.

msgspec stops at the first problem, which is right for speed and wrong for people; once it has refused,
`convert` walks value and type together and names each field by its path (`schedule.every`, `tags[2]`).
"""

from __future__ import annotations

import difflib
import re
import types
import typing
from collections.abc import Collection, Iterator
from enum import Enum
from itertools import islice
from typing import Any, Final

import msgspec

from ksana.domain.errors import InvalidArgument, Problem

MAX_PROBLEMS: Final = 50
_MAX_STEPS: Final = 10_000
_AT: Final = re.compile(r" - at `\$(.*)`$", re.DOTALL)


def convert(tree: Any, to: Any, *, strict: bool = True) -> Any:
    """The typed value of a decoded tree; raises InvalidArgument with every problem found."""
    try:
        return msgspec.convert(tree, to, strict=strict, str_keys=True)
    except (msgspec.ValidationError, InvalidArgument):
        raise InvalidArgument(islice(_Walk(strict).problems(tree, to, ""), MAX_PROBLEMS)) from None


def one_of(given: str, known: Collection[str]) -> str:
    """The sentence for a word that is not among the known ones, with a guess at what was meant."""
    near = difflib.get_close_matches(given[:100], known, n=1)
    guess = f"; did you mean {near[0]}?" if near else ""
    return f"{_short(given)} is not one of {', '.join(sorted(known))}{guess}"


class _Walk:
    """Walks a value that msgspec refused. A step that finds nothing deeper reports msgspec's own words.

    The steps are counted: past the limit msgspec's first problem is enough, and the event loop is wanted back.
    """

    def __init__(self, strict: bool) -> None:
        self._strict = strict
        self._steps = 0

    def problems(self, value: Any, to: Any, path: str) -> Iterator[Problem]:
        self._steps += 1
        failure = self._failure(value, to) if self._steps <= _MAX_STEPS else None
        if failure is None:
            return
        deeper = False
        for problem in self._inside(value, _plain(to), path):
            deeper = True
            yield problem
        if not deeper:
            yield from _as_problems(failure, path, to)

    def _failure(self, value: Any, to: Any) -> msgspec.ValidationError | InvalidArgument | None:
        try:
            msgspec.convert(value, to, strict=self._strict, str_keys=True)
        except (msgspec.ValidationError, InvalidArgument) as error:
            return error
        return None

    def _inside(self, value: Any, to: Any, path: str) -> Iterator[Problem]:
        origin = typing.get_origin(to)
        if origin in (typing.Union, types.UnionType):
            yield from self._in_union(value, typing.get_args(to), path)
        elif _is_struct(to) and isinstance(value, dict):
            yield from self._in_struct(value, to, path)
        elif origin in (list, set, frozenset) and isinstance(value, list):
            (item,) = typing.get_args(to)
            for index, element in enumerate(value[:_MAX_STEPS]):
                yield from self.problems(element, item, f"{path}[{index}]")
        elif origin is dict and isinstance(value, dict):
            _, item = typing.get_args(to)
            for key, element in islice(value.items(), _MAX_STEPS):
                yield from self.problems(element, item, _joined(path, _short(key)))

    def _in_union(self, value: Any, options: tuple[Any, ...], path: str) -> Iterator[Problem]:
        plain = [_plain(option) for option in options]
        structs = [option for option in plain if _is_struct(option)]
        if isinstance(value, dict) and structs:
            if structs[0].__struct_config__.tag_field is None:
                yield from self._in_struct(value, structs[0], path)
            else:
                yield from self._in_tagged(value, structs, path)
        elif isinstance(value, list | dict):
            kinds = (list, set, frozenset) if isinstance(value, list) else (dict,)
            for option in plain:
                if typing.get_origin(option) in kinds:
                    yield from self._inside(value, option, path)

    def _in_tagged(self, value: dict[str, Any], structs: list[Any], path: str) -> Iterator[Problem]:
        tag_field = structs[0].__struct_config__.tag_field
        by_tag = {str(struct.__struct_config__.tag): struct for struct in structs}
        tag = value.get(tag_field)
        if tag is None:
            yield Problem(_joined(path, tag_field), f"is required: one of {', '.join(sorted(by_tag))}")
        elif str(tag) not in by_tag:
            yield Problem(_joined(path, tag_field), one_of(str(tag), by_tag))
        else:
            yield from self._in_struct(value, by_tag[str(tag)], path)

    def _in_struct(self, value: dict[str, Any], to: Any, path: str) -> Iterator[Problem]:
        fields = {field.encode_name: field for field in msgspec.structs.fields(to)}
        config = to.__struct_config__
        if config.forbid_unknown_fields:
            known = sorted({*fields, config.tag_field} - {None})
            for name in value:
                if name not in known:
                    yield Problem(_joined(path, _short(name)), _unknown(name, known))
        for name, field in fields.items():
            if name in value:
                yield from self.problems(value[name], field.type, _joined(path, name))
            elif field.required:
                yield Problem(_joined(path, name), "is required")


def _unknown(name: str, known: Collection[str]) -> str:
    near = difflib.get_close_matches(name[:100], known, n=1)
    if near:
        return f"is not a known field; did you mean {near[0]}?"
    return f"is not a known field; known are {', '.join(known)}" if known else "is not a known field; there are none"


def _as_problems(failure: msgspec.ValidationError | InvalidArgument, path: str, to: Any) -> Iterator[Problem]:
    if isinstance(failure, InvalidArgument):
        for problem in failure.problems:
            yield Problem(_joined(path, problem.field), problem.message)
        return
    text = str(failure)
    where = _AT.search(text)
    below = where[1] if where else ""
    choices = _choices(to) if not below else ()
    message = f"must be one of {', '.join(choices)}" if choices else _sentence(_AT.sub("", text))
    yield Problem((path + below).removeprefix("."), message)


def _choices(to: Any) -> list[str]:
    plain = _plain(to)
    options = typing.get_args(plain) if typing.get_origin(plain) in (typing.Union, types.UnionType) else (plain,)
    words: list[str] = []
    for option in map(_plain, options):
        if isinstance(option, type) and issubclass(option, Enum):
            words += [str(member.value) for member in option]
        elif typing.get_origin(option) is typing.Literal:
            words += [str(word) for word in typing.get_args(option)]
        elif option is not types.NoneType:
            return []
    return words


def _sentence(text: str) -> str:
    return text[:1].lower() + text[1:].replace("`", "")


def _plain(to: Any) -> Any:
    return typing.get_args(to)[0] if typing.get_origin(to) is typing.Annotated else to


def _is_struct(to: Any) -> bool:
    return isinstance(to, type) and issubclass(to, msgspec.Struct)


def _joined(path: str, name: str) -> str:
    return f"{path}.{name}" if path and name else path or name


def _short(text: str) -> str:
    return text if len(text) <= 60 else text[:57] + "..."
