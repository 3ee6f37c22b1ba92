"""The HTTP target: one attempt is one request (and the redirects it leads to), bounded in time and memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any

from ksana import __version__
from ksana.domain.errors import InvalidArgument, Problem
from ksana.domain.outcomes import AttemptContext, Outcome, Verdict
from ksana.domain.ports import Begun
from ksana.targets.http.config import Mode, checked, checked_headers
from ksana.targets.http.courier import Courier
from ksana.targets.http.limits import Limits
from ksana.targets.http.plans import Plans, Request
from ksana.targets.http.policy import TargetPolicy
from ksana.targets.http.pool import Pool
from ksana.targets.http.redaction import Secrets
from ksana.targets.http.routes import Lookup, Routes, system_lookup
from ksana.targets.http.signing import SIGNATURE_HEADERS

_DEFAULTS = {
    "User-Agent": f"ksana/{__version__}",
    "Accept": "*/*",
    # Bodies are kept as they come in, so a compressed one would be of no use to the reader.
    "Accept-Encoding": "identity",
}


class HttpTarget:
    """Makes HTTP calls. A `signing_secret` adds a Standard Webhooks signature; `redact` names further headers
    whose values are never kept."""

    kind: str = "http"
    fills_markers = True
    """Markers of chains are left to it, which knows how to escape what goes where."""

    def __init__(
        self,
        *,
        policy: TargetPolicy,
        now: Callable[[], datetime],
        limits: Limits | None = None,
        global_headers: Mapping[str, str] | None = None,
        signing_secret: bytes | None = None,
        redact: Iterable[str] = (),
        lookup: Lookup = system_lookup,
        courier: Callable[..., Courier] = Courier,
    ) -> None:
        limits = limits or Limits()
        secrets = Secrets(redact)
        self._routes = Routes(policy, lookup, limits.max_names, limits.name_ttl)
        self._pool = Pool(limits)
        self._courier = courier(self._routes, self._pool, limits, secrets, signing_secret, now)
        ours = SIGNATURE_HEADERS if signing_secret is not None else frozenset[str]()
        self._plans = Plans(limits.max_plans, _with_defaults(global_headers or {}), secrets, ours)

    def check(self, config: dict[str, Any]) -> dict[str, Any]:
        """The config with its defaults filled in, or InvalidArgument naming every field at fault."""
        return checked(config).plain()

    def awaits_callback(self, config: dict[str, Any], input: Any = None) -> bool:
        """Whether a run of this config, with that input, ends by a callback rather than by the answer."""
        return bool(config.get("mode") == Mode.ASYNC) or _asks_for_callback(input)

    async def execute(self, context: AttemptContext, config: dict[str, Any]) -> Outcome:
        """Make one attempt. The run's input may replace `body`, and ask for a callback by `mode`: `async`."""
        try:
            request = self._request(context, config)
        except _UNFIT as error:
            return _not_called(error)
        return await self._courier.deliver(request, context)

    def begin(
        self, context: AttemptContext, config: dict[str, Any], tell: Callable[[Outcome], None]
    ) -> Begun | Outcome | None:
        """The same without a task that waits for it, where a connection stands ready."""
        try:
            request = self._request(context, config)
        except _UNFIT as error:
            return _not_called(error)
        return self._courier.begin(request, context, tell)

    async def close(self) -> None:
        """Let go of every connection."""
        await self._routes.close()
        await self._pool.close()

    def _request(self, context: AttemptContext, config: dict[str, Any]) -> Request:
        given = context.input
        if not isinstance(given, dict):
            return self._plans.plan(config).request(context, False)
        forced_async = _asks_for_callback(given)
        body = given.get("body")
        if body is None:
            return self._plans.plan(config).request(context, forced_async)
        field = "body" if isinstance(body, str) else "json"
        replaced = {**config, "body": None, "json": None, field: body}
        return self._plans.compiled(replaced).request(context, forced_async)


# What was filled in cannot be sent, or the run's input cannot be written as JSON.
_UNFIT = (InvalidArgument, ValueError, TypeError, RecursionError)


def _not_called(error: Exception) -> Outcome:
    said = error.message if isinstance(error, InvalidArgument) else str(error)
    return Outcome(Verdict.FAIL, f"not called: {said}")


def _asks_for_callback(input: Any) -> bool:
    return isinstance(input, dict) and bool(input.get("mode") == Mode.ASYNC)


def _with_defaults(headers: Mapping[str, str]) -> dict[str, str]:
    problems: list[Problem] = []
    pairs = checked_headers(dict(headers), "executor.global_headers", problems)
    if problems:
        raise InvalidArgument(problems)
    given = {name.lower() for name in headers}
    return {name: value for name, value in _DEFAULTS.items() if name.lower() not in given} | dict(pairs)
