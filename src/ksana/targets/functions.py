"""Finds the function a config names: registered in this process, or importable from an allowed module.

Whoever may create jobs must not thereby be able to run any code on the machine. So nothing is importable by
default, and what an allowed module has imported from elsewhere does not count as its own.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import re
import sys
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

import msgspec

from ksana.domain.errors import InvalidArgument
from ksana.domain.outcomes import AttemptContext
from ksana.targets.checks import did_you_mean

CONTEXT_NAMES = ("run", "context")
# As the package itself calls it, and as people import it: `from ksana import Run`.
_CONTEXT_TYPES = (AttemptContext.__name__, "Run")

_IMPORT_PATH = re.compile(r"(?P<module>[^\W\d]\w*(?:\.[^\W\d]\w*)*):(?P<attributes>[^\W\d]\w*(?:\.[^\W\d]\w*)*)")


class Function(msgspec.Struct, frozen=True):
    """A callable and what must be known to call it."""

    call: Callable[..., Any]
    is_async: bool
    signature: inspect.Signature | None
    context_name: str | None = None
    context_position: int = 0

    def arguments(self, args: list[Any], kwargs: dict[str, Any], context: Any) -> tuple[list[Any], dict[str, Any]]:
        """The arguments, with the context in its place if the function asks for it and `kwargs` has none."""
        name, position = self.context_name, self.context_position
        if name is None or name in kwargs:
            return args, kwargs
        if position >= len(args):
            return args, {**kwargs, name: context}
        return [*args[:position], context, *args[position:]], kwargs


class Functions:
    """`registered` is looked at anew each time, so a function may be registered late or replaced."""

    def __init__(self, registered: Mapping[str, Callable[..., Any]], importable: tuple[str, ...]) -> None:
        self._registered = registered
        self._importable = importable
        self._described: dict[str, Function] = {}
        self._imported: dict[str, Function] = {}

    def find(self, name: str) -> Function:
        """The function of that name, or InvalidArgument saying what would make it findable."""
        call = self._registered.get(name)
        if call is None:
            return self._import(name)
        known = self._described.get(name)
        if known is None or known.call is not call:
            known = self._described[name] = _describe(name, call)
        return known

    def refuse_malformed(self, name: str) -> None:
        """InvalidArgument if nothing could ever be found by this name."""
        if not name or (":" in name and name not in self._registered and not _IMPORT_PATH.fullmatch(name)):
            raise _problem(f"{name!r} is no function; write a registered name, or package.module:function")

    def _import(self, name: str) -> Function:
        known = self._imported.get(name)
        if known is not None:
            return known
        self.refuse_malformed(name)
        path = _IMPORT_PATH.fullmatch(name)
        if path is None:
            raise _problem(
                f"no function is registered as {name!r}; register it, or write package.module:function"
                + did_you_mean(name, self._registered)
            )
        if not self._allows(path["module"]):
            allowed = ", ".join(self._importable) or "none"
            raise _problem(
                f"module {path['module']!r} may not be imported (allowed: {allowed}); register the function, "
                f"or add {path['module'].partition('.')[0]!r} to python_importable"
            )
        found = _attribute(_module(path["module"]), path["attributes"])
        function = _describe(name, found)
        if not self._allows(_home(found)):
            raise _problem(
                f"{name!r} comes from {_home(found) or 'no module'!r}, which may not be imported; "
                "register it, or, if a decorator hides where it is defined, have that use functools.wraps"
            )
        self._imported[name] = function
        return function

    def _allows(self, module: str) -> bool:
        return any(module == prefix or module.startswith(f"{prefix}.") for prefix in self._importable)


def _module(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    # A module may call sys.exit when imported; that must not end the server.
    except (Exception, SystemExit) as error:
        raise _problem(f"module {name!r} does not import: {type(error).__name__}: {error}") from error


def _attribute(module: ModuleType, path: str) -> Any:
    found: Any = module
    for name in path.split("."):
        # Underscored names lead from any function to its globals, and modules to whatever they imported.
        value = None if name.startswith("_") else _value(found, name)
        if value is None or inspect.ismodule(value):
            near = did_you_mean(name, (each for each, there in vars(module).items() if callable(there)))
            raise _problem(f"there is no function {path!r} in module {module.__name__!r}{near}")
        found = value
    return found


def _value(owner: Any, name: str) -> Any:
    try:
        return getattr(owner, name, None)
    except Exception as error:
        raise _problem(f"reading {name!r} failed: {type(error).__name__}: {error}") from error


def _home(call: Any) -> str:
    """The module that defines the callable, seen through partials; an instance counts by its class."""
    while isinstance(call, functools.partial):
        call = call.func
    home = getattr(call, "__module__", None)
    return home if isinstance(home, str) else ""


def _describe(name: str, call: Any) -> Function:
    if not callable(call):
        raise _problem(f"{name!r} is {type(call).__name__}, not a function")
    # Asked of the type, as a call does: an instance may have an async __call__, which is not its class's own.
    bodies = (call, type(call).__call__)
    if any(inspect.isgeneratorfunction(body) or inspect.isasyncgenfunction(body) for body in bodies):
        raise _problem(f"{name!r} is a generator, so calling it would run nothing; use return instead of yield")
    is_async = any(inspect.iscoroutinefunction(body) for body in bodies)
    try:
        signature = inspect.signature(call)
    except (TypeError, ValueError):
        # Some functions written in C tell nothing about their parameters.
        return Function(call, is_async, None)
    for position, parameter in enumerate(signature.parameters.values()):
        if _asks_for_context(parameter):
            named_only = parameter.kind is parameter.KEYWORD_ONLY
            return Function(call, is_async, signature, parameter.name, sys.maxsize if named_only else position)
    return Function(call, is_async, signature)


def _asks_for_context(parameter: inspect.Parameter) -> bool:
    if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
        return False
    annotation = parameter.annotation
    if annotation is parameter.empty:
        return parameter.name in CONTEXT_NAMES
    # Under `from __future__ import annotations` an annotation is its source text.
    named = annotation.rpartition(".")[2] if isinstance(annotation, str) else None
    return annotation is AttemptContext or named in _CONTEXT_TYPES


def _problem(message: str) -> InvalidArgument:
    return InvalidArgument.of("function", message)
