"""A config compiled once, so that an attempt only has to fill in what differs from the last one."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

import msgspec

from ksana.domain.outcomes import AttemptContext
from ksana.targets.http import templates
from ksana.targets.http.bodies import JSON, Body, body_of, inferred_type, with_callback
from ksana.targets.http.config import HttpConfig, Mode, checked, value_problem
from ksana.targets.http.destinations import Destination, destination_of
from ksana.targets.http.heads import BODY_METHODS, Headers, Stencil
from ksana.targets.http.redaction import MASK, Secrets
from ksana.targets.http.templates import Place, Template, Values
from ksana.targets.http.variables import (
    ATTEMPT_HEADERS,
    CALLBACK_HEADERS,
    PROTECTED_HEADERS,
    Variables,
    attempt_headers,
)

_CACHED_BODY = 64 * 1024


class Request(msgspec.Struct, frozen=True, gc=False):
    """One request of an attempt, ready to be sent."""

    method: str
    to: Destination
    headers: Headers
    body: bytes
    is_async: bool
    has_secrets: bool
    has_host: bool
    """Whether the job has a Host header of its own."""
    is_signed: bool
    """Whether a signature may go with it, if there is a secret to sign with."""
    line: str
    """The request as people, logs and alerts may see it."""
    token: str = ""
    """The callback token that goes with it; its URL may hold it, too."""
    head: bytes = b""
    """How it begins on the wire, if that is known already."""


def line_of(method: str, to: Destination, token: str = "") -> str:
    """A request as it may be shown: whoever reads of a run must not be able to end it."""
    return f"{method} {to.shown.replace(token, MASK) if token else to.shown}"


class Plan:
    """What can be said about the requests of a config before there is an attempt."""

    def __init__(self, config: HttpConfig, defaults: Mapping[str, str], secrets: Secrets, ours: frozenset[str]) -> None:
        """The config's headers replace `defaults`; names in `ours` (lower case) are taken from neither."""
        self.is_async = config.mode is Mode.ASYNC
        self._method = config.method
        self._url = templates.in_text(config.url, Place.URL)
        self._source = config.url
        self._to = None if self._url is not None else destination_of(config.url)
        merged = {name.lower(): (name, value) for name, value in defaults.items()}
        merged |= {name.lower(): (name, value) for name, value in config.headers}
        for name in PROTECTED_HEADERS | ours:
            merged.pop(name, None)
        self._names = frozenset(merged)
        compiled = [(name, value, templates.in_text(value)) for name, value in merged.values()]
        self._headers = {name: value for name, value, template in compiled if template is None}
        self._filled = [(name, template) for name, _, template in compiled if template is not None]
        self._all_attempt_headers = not any(name.lower() in self._names for name in ATTEMPT_HEADERS)
        self._has_secrets = any(name in secrets for name in (*self._names, *ATTEMPT_HEADERS, *CALLBACK_HEADERS))
        declared = merged.get("content-type", ("", ""))[1] or None
        if config.json is None:
            self._body: Body = body_of(config.body or "", declared)
            inferred = self._body.content_type
        else:
            self._body = body_of(config.json.decode(), declared or JSON)
            inferred = JSON
        if inferred and declared is None:
            self._headers["Content-Type"] = inferred
        self._has_type = bool(declared or inferred)
        self._has_host = "host" in self._names
        self._static = self._ready_made()
        self.weight = len(self._body.content)

    def _ready_made(self) -> tuple[Request, Stencil] | None:
        """The request, but for what every attempt says of itself, if attempts differ in nothing else."""
        to, body = self._to, self._body.content
        if to is None or self._filled or self._body.template is not None or not self._all_attempt_headers:
            return None
        request = self._ready(to, dict(self._headers), body)
        return request, Stencil(self._method, to, request.headers, body, self._has_host, ATTEMPT_HEADERS)

    def request(self, context: AttemptContext, forced_async: bool) -> Request:
        """The first request of this attempt. ValueError if what was filled in cannot be sent."""
        is_async = forced_async or self.is_async
        said = attempt_headers(context)
        if self._static is not None and not is_async:
            return self._filled_in(*self._static, said)
        headers = self._headers | self._attempt_headers(said)
        values = Variables(context)
        to = self._to or self._destination(values, context.input)
        headers |= {name: self._header(name, template, values, context.input) for name, template in self._filled}
        body = self._body.fill(values, context.input)
        if is_async:
            to, body = self._with_callback(to, headers, body, context)
        if not self._has_type and (content_type := inferred_type(body)):
            headers["Content-Type"] = content_type
        return self._ready(to, headers, body, is_async, context.callback_token)

    @staticmethod
    def _filled_in(request: Request, stencil: Stencil, said: Headers) -> Request:
        return Request(
            request.method,
            request.to,
            {**request.headers, **said},
            request.body,
            False,
            request.has_secrets,
            request.has_host,
            True,
            request.line,
            "",
            stencil.filled(tuple(said.values())),
        )

    def _ready(
        self, to: Destination, headers: Headers, body: bytes, is_async: bool = False, token: str = ""
    ) -> Request:
        has_secrets = self._has_secrets
        if to.authorization and "authorization" not in self._names:
            headers["Authorization"] = to.authorization
            has_secrets = True
        line = line_of(self._method, to, token)
        return Request(self._method, to, headers, body, is_async, has_secrets, self._has_host, True, line, token)

    def _attempt_headers(self, said: Headers) -> Headers:
        return {name: value for name, value in said.items() if name.lower() not in self._names}

    def _destination(self, values: Values, given: Any) -> Destination:
        assert self._url is not None
        text = self._url.fill(values, given)
        try:
            return destination_of(text)
        except ValueError as error:
            raise ValueError(f"target.url, filled in as {text[:200]!r}, {error}") from None

    @staticmethod
    def _header(name: str, template: Template, values: Values, given: Any) -> str:
        value = template.fill(values, given)
        if problem := value_problem(value):
            raise ValueError(f"target.headers.{name}, filled in, {problem}")
        return value

    def _with_callback(
        self, to: Destination, headers: Headers, body: bytes, context: AttemptContext
    ) -> tuple[Destination, bytes]:
        url, token = context.callback_url, context.callback_token
        pairs = zip(CALLBACK_HEADERS, (url, token), strict=True)
        headers |= {name: value for name, value in pairs if name.lower() not in self._names}
        if body or self._method in BODY_METHODS:
            body = with_callback(body, url, token)
        elif self._method == "GET":
            there = to.parameters
            asked = [("callback_url", url), ("callback_token", token)]
            to = to.with_parameters([pair for pair in asked if pair[0] not in there])
        return to, body


class Plans:
    """The plans of the configs seen last."""

    def __init__(self, size: int, defaults: Mapping[str, str], secrets: Secrets, ours: frozenset[str]) -> None:
        self._size = size
        self._defaults = defaults
        self._secrets = secrets
        self._ours = ours
        self._kept: OrderedDict[object, Plan] = OrderedDict()
        self._seen: dict[int, tuple[dict[str, Any], Plan]] = {}

    def plan(self, config: dict[str, Any]) -> Plan:
        """The plan for this config. Mostly the very same config comes again, of a job that is kept at hand."""
        seen = self._seen.get(id(config))
        if seen is not None and seen[0] is config:
            return seen[1]
        plan = self._found(config)
        if plan.weight <= _CACHED_BODY:
            if len(self._seen) >= self._size:
                self._seen.clear()
            self._seen[id(config)] = (config, plan)
        return plan

    def _found(self, config: dict[str, Any]) -> Plan:
        """The plan for a config with the same content: a job read from a store is a new object every time."""
        try:
            key = _key(config)
            plan = self._kept.get(key)
        except (AttributeError, TypeError, ValueError):
            # A value of a type no config may have; compiling says which.
            return self.compiled(config)
        if plan is not None:
            self._kept.move_to_end(key)
            return plan
        plan = self.compiled(config)
        if plan.weight <= _CACHED_BODY:
            self._kept[key] = plan
            if len(self._kept) > self._size:
                self._kept.popitem(last=False)
        return plan

    def compiled(self, config: dict[str, Any]) -> Plan:
        """A plan that is not kept, or InvalidArgument."""
        return Plan(checked(config), self._defaults, self._secrets, self._ours)


def _key(config: dict[str, Any]) -> object:
    get = config.get
    headers, json = get("headers"), get("json")
    return (
        get("url"),
        get("method"),
        get("body"),
        get("mode"),
        tuple(headers.items()) if headers else None,
        None if json is None else msgspec.json.encode(json),
    )
