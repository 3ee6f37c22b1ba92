"""Chains written down in code: each step is a function, or a call of a URL, with the steps it needs.

A function is given what the steps it needs have returned, by their names, if it has parameters called so.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any, TypedDict, TypeVar, Unpack, cast, overload

from ksana.domain.durations import format_duration
from ksana.domain.errors import AlreadyExists, InvalidArgument

F = TypeVar("F", bound=Callable[..., Any])
Need = str | Callable[..., Any]
Span = str | timedelta


class StepRules(TypedDict, total=False):
    """What every step takes: how often and after how long it is tried again, how long one try may take, and when it is
    done at all (`all_success`, `all_done`, `any_failed`, or a condition such as `"pull.artifact.rows > 0"`)."""

    retries: int
    backoff: Span
    timeout: Span
    when: str


class ChainDefinition:
    """A chain and its steps, in the order in which they were written down."""

    def __init__(
        self, name: str, *, params: Mapping[str, Any] | None, max_parallel: int | None, fail_fast: bool
    ) -> None:
        self.name = name
        self.functions: dict[str, Callable[..., Any]] = {}
        self._options = {
            key: value
            for key, value in (("params", params), ("maxParallel", max_parallel), ("failFast", fail_fast or None))
            if value is not None
        }
        self._nodes: dict[str, dict[str, Any]] = {}
        self._names: dict[Callable[..., Any], str] = {}

    @overload
    def node(self, function: F, /) -> F: ...
    @overload
    def node(
        self,
        *,
        needs: Need | Sequence[Need] = ...,
        name: str = ...,
        retries: int = ...,
        backoff: Span = ...,
        timeout: Span = ...,
        when: str = ...,
    ) -> Callable[[F], F]: ...
    def node(self, *functions: Any, needs: Need | Sequence[Need] = (), name: str = "", **rules: Any) -> Any:
        """Have a function be a step. It is returned as it is; what it returns is handed on."""

        def decorate(function: F) -> F:
            step = name or str(getattr(function, "__name__", ""))
            if not step:
                raise InvalidArgument.of("name", "this function has none; say name=…")
            needed = self._needed(needs)
            called = f"{self.name}.{step}"
            taken = {need: f"{{{{{need}.artifact}}}}" for need in needed if need in _parameters(function)}
            self._add(step, "python", {"function": called, "kwargs": taken}, needed, cast(StepRules, rules))
            self.functions[called] = function
            self._names[function] = step
            return function

        return decorate(*functions) if functions else decorate

    def http(
        self,
        name: str,
        call: str,
        *,
        needs: Need | Sequence[Need] = (),
        json: Any = None,
        headers: Mapping[str, str] | None = None,
        **rules: Unpack[StepRules],
    ) -> None:
        """Have a call of a URL be a step: `"POST https://dw.internal/load"`."""
        self._add(name, "http", http_config(call, json, headers), self._needed(needs), rules)

    def step(
        self,
        name: str,
        type: str,
        config: Mapping[str, Any] | None = None,
        *,
        needs: Need | Sequence[Need] = (),
        **rules: Unpack[StepRules],
    ) -> None:
        """Have anything else be a step that is a node type."""
        self._add(name, type, dict(config or {}), self._needed(needs), rules)

    def dag(self) -> dict[str, Any]:
        """The chain as a dag."""
        return {"nodes": list(self._nodes.values()), **self._options}

    def _add(self, name: str, type: str, config: dict[str, Any], needs: list[str], rules: StepRules) -> None:
        if unknown := sorted(rules.keys() - StepRules.__optional_keys__):
            raise InvalidArgument.of(unknown[0], "is nothing a node knows")
        if name in self._nodes:
            raise AlreadyExists(f"two nodes of {self.name} are called {name!r}; give one of them another name")
        retry = {"maxAttempts": 1 + rules.get("retries", 2), "backoff": _text(rules.get("backoff", "1s"))}
        node: dict[str, Any] = {"id": name, "type": type, "dependsOn": needs, "cfg": config, "retry": retry}
        if "timeout" in rules:
            node["timeout"] = _text(rules["timeout"])
        if "when" in rules:
            node["when"] = rules["when"]
        self._nodes[name] = node

    def _needed(self, needs: Need | Sequence[Need]) -> list[str]:
        wanted = [needs] if isinstance(needs, str) or callable(needs) else list(needs)
        return [self._name_of(need) for need in wanted]

    def _name_of(self, need: Need) -> str:
        name = need if isinstance(need, str) else self._names.get(need)
        if name is None or name not in self._nodes:
            shown = need if isinstance(need, str) else getattr(need, "__name__", repr(need))
            raise InvalidArgument.of("needs", f"{shown!r} is no node of {self.name} yet; write it down above")
        return name


def http_config(call: str, json: Any, headers: Mapping[str, str] | None, *, is_async: bool = False) -> dict[str, Any]:
    """What the target is told of a call such as `POST https://svc.internal/sync`."""
    method, _, url = call.strip().partition(" ")
    if not url:
        method, url = "GET", method
    config: dict[str, Any] = {"method": method.upper(), "url": url.strip()}
    if json is not None:
        config["json"] = json
    if headers:
        config["headers"] = dict(headers)
    if is_async:
        config["mode"] = "async"
    return config


def _parameters(function: Callable[..., Any]) -> frozenset[str]:
    try:
        return frozenset(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return frozenset()


def _text(span: Span) -> str:
    return span if isinstance(span, str) else format_duration(span)
