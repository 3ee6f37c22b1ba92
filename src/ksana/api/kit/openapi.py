"""The OpenAPI 3.1 description of a route table.

Everything in it comes from the table and the structs the routes really decode and encode, so it cannot say
what the server does not do.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from ksana.api.kit.errors import (
    ErrorBody,
    Forbidden,
    IdempotencyInFlight,
    IdempotencyMismatch,
    InvalidId,
    InvalidJson,
    MisdirectedRequest,
    PayloadTooLarge,
    PreconditionFailed,
    Unauthenticated,
    UnsupportedMediaType,
    status_of,
)
from ksana.api.kit.idempotency import KEY_PATTERN
from ksana.api.kit.routes import PUBLIC, Param, ParamKind, Route, Surface, each, params_of
from ksana.domain.errors import InvalidArgument, KsanaError, StoreUnavailable

Json = dict[str, Any]

_REF: Final = "#/components/schemas/{name}"
_PARAM_SCHEMAS: Final[dict[ParamKind, Json]] = {
    ParamKind.INT: {"type": "integer", "format": "int64", "minimum": 0, "maximum": 2**63 - 1},
    ParamKind.UUID: {"type": "string", "format": "uuid"},
    ParamKind.TEXT: {"type": "string", "minLength": 1},
}
_IDEMPOTENCY_KEY: Final[Json] = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "description": "Repeated with the same key, the request creates nothing twice and gets the first answer.",
    "schema": {"type": "string", "minLength": 1, "maxLength": 255, "pattern": KEY_PATTERN},
}
_IF_MATCH: Final[Json] = {
    "name": "If-Match",
    "in": "header",
    "required": False,
    "description": "The ETag of the version to change; 412 if it is no longer the stored one.",
    "schema": {"type": "string", "pattern": r'^(\*|"(0|[1-9][0-9]{0,17})")$'},
}
_SECURITY_SCHEMES: Final[Json] = {
    "bearer": {"type": "http", "scheme": "bearer", "description": "An API key: ksk_<id>_<secret>"},
    "apiKey": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
}


def describe(surfaces: Sequence[Surface], *, title: str, version: str) -> Json:
    """The description as a tree ready to be encoded."""
    schemas = _Schemas(surfaces)
    paths: dict[str, Json] = {}
    for surface, route in each(surfaces):
        if not route.hidden:
            _enter(paths.setdefault(_template(route.path), {}), _Operation(surface, route, schemas))
    return {
        "openapi": "3.1.0",
        "info": {"title": title, "version": version or "0"},
        "tags": [{"name": surface.name, "description": surface.summary} for surface in surfaces],
        "paths": paths,
        "components": {"schemas": schemas.components, "securitySchemes": _SECURITY_SCHEMES},
    }


class _Schemas:
    """The schema of every type the routes name, made together so that they share their components."""

    def __init__(self, surfaces: Sequence[Surface]) -> None:
        named: list[Any] = [ErrorBody]
        for _, route in each(surfaces):
            named += [kind for kind in (route.request, route.response, route.query) if kind is not None]
        kinds = list({repr(kind): kind for kind in named}.values())
        references, self.components = msgspec.json.schema_components(kinds, ref_template=_REF)
        self._by_type = {repr(kind): schema for kind, schema in zip(kinds, references, strict=True)}

    def of(self, kind: Any) -> Json:
        return dict(self._by_type[repr(kind)])

    def properties(self, struct: type[msgspec.Struct]) -> tuple[Json, list[str]]:
        schema = self.of(struct)
        reference: str = schema["$ref"]
        component = self.components[reference.rsplit("/", 1)[1]]
        return component.get("properties", {}), component.get("required", [])


class _Operation:
    """One route as OpenAPI says it."""

    def __init__(self, surface: Surface, route: Route[Any, Any], schemas: _Schemas) -> None:
        self.route = route
        self._surface = surface
        self._schemas = schemas

    def show(self) -> Json:
        route = self.route
        shown: Json = {
            "operationId": f"{self._surface.name}_{route.operation}",
            "tags": [self._surface.name],
            "summary": route.summary or route.operation.replace("_", " "),
            "responses": self._responses(),
        }
        parameters = self._parameters()
        if parameters:
            shown["parameters"] = parameters
        if route.raw:
            described = (
                {} if route.request is None else {"application/json": {"schema": self._schemas.of(route.request)}}
            )
            shown["requestBody"] = {"required": False, "content": {**described, "*/*": {"schema": {}}}}
        elif route.request is not None:
            content = {"application/json": {"schema": self._schemas.of(route.request)}}
            shown["requestBody"] = {"required": not route.optional_body, "content": content}
        if route.scope is not PUBLIC:
            shown["security"] = [{"bearer": []}, {"apiKey": []}, {}]
            shown["x-scope"] = " | ".join(map(str, (route.scope, *route.or_scopes)))
        return shown

    def _parameters(self) -> list[Json]:
        route = self.route
        parameters = [_path_parameter(param) for param in params_of(route.path)]
        if route.query is not None:
            properties, required = self._schemas.properties(route.query)
            parameters += [_query_parameter(name, schema, name in required) for name, schema in properties.items()]
        if route.creates:
            parameters.append(_IDEMPOTENCY_KEY)
        if route.versioned:
            parameters.append(_IF_MATCH)
        return parameters

    def _responses(self) -> Json:
        route = self.route
        good: Json = {
            "description": route.summary or "done",
            "headers": {"X-Request-Id": {"schema": {"type": "string"}}},
        }
        if route.response is not None:
            good["content"] = {route.media_type: {"schema": self._schemas.of(route.response)}}
        elif route.media_type != "application/json":
            good["content"] = {route.media_type: {"schema": {"type": "string"}}}
        responses: Json = {str(status): good for status in (route.status, route.other_status) if status is not None}
        codes: dict[int, set[str]] = {500: {"INTERNAL"}}
        for error in self._errors():
            codes.setdefault(status_of(error), set()).add(error.code)
        for status in sorted(codes):
            responses[str(status)] = {
                "description": ", ".join(sorted(codes[status])),
                "content": {"application/json": {"schema": self._schemas.of(ErrorBody)}},
            }
        return responses

    def _errors(self) -> list[type[KsanaError]]:
        route = self.route
        errors: list[type[KsanaError]] = [*route.errors, InvalidArgument, StoreUnavailable]
        if params_of(route.path):
            errors.append(InvalidId)
        if route.method != "GET":
            errors.append(Forbidden)
        if route.scope is not PUBLIC:
            errors += [Unauthenticated, Forbidden, MisdirectedRequest]
        if route.request is not None or route.raw or route.creates:
            errors.append(PayloadTooLarge)
        if route.request is not None and not route.raw:
            errors += [InvalidJson, UnsupportedMediaType]
        if route.creates:
            errors += [IdempotencyInFlight, IdempotencyMismatch]
        if route.versioned:
            errors.append(PreconditionFailed)
        return errors


def _enter(item: Json, operation: _Operation) -> None:
    method = operation.route.method.lower()
    shown = operation.show()
    # Two routes may share a path and differ only in the form of the id; OpenAPI can only say "any of".
    item[method] = _merged(item[method], shown) if method in item else shown


def _merged(one: Json, other: Json) -> Json:
    merged = {
        **one,
        "tags": sorted({*one["tags"], *other["tags"]}),
        "summary": f"{one['summary']} / {other['summary']}",
    }
    merged["operationId"] = f"{one['operationId']}_or_{other['operationId']}"
    merged["parameters"] = _merged_parameters(one.get("parameters", []), other.get("parameters", []))
    responses = dict(one["responses"])
    for status, response in other["responses"].items():
        responses[status] = _merged_content(responses[status], response) if status in responses else response
    merged["responses"] = responses
    bodies = [shown["requestBody"] for shown in (one, other) if "requestBody" in shown]
    if bodies:
        body = bodies[0] if len(bodies) == 1 else _merged_content(*bodies)
        merged["requestBody"] = {
            **body,
            "required": len(bodies) == 2 and all(each["required"] for each in bodies),
        }
    return merged


def _merged_parameters(one: list[Json], other: list[Json]) -> list[Json]:
    by_name = {(parameter["in"], parameter["name"]): parameter for parameter in one}
    for parameter in other:
        name = (parameter["in"], parameter["name"])
        known = by_name.get(name)
        if known is None:
            by_name[name] = parameter
        elif known["schema"] != parameter["schema"]:
            by_name[name] = {**known, "schema": {"anyOf": [known["schema"], parameter["schema"]]}}
    return list(by_name.values())


def _merged_content(one: Json, other: Json) -> Json:
    content = dict(one.get("content", {}))
    for media_type, shown in other.get("content", {}).items():
        known = content.get(media_type)
        if known is None:
            content[media_type] = shown
        elif known["schema"] != shown["schema"]:
            content[media_type] = {"schema": {"anyOf": [known["schema"], shown["schema"]]}}
    return {**one, "content": content} if content else one


def _template(path: str) -> str:
    return re.sub(r"\{(\w+):\w+\}", r"{\1}", path)


def _path_parameter(param: Param) -> Json:
    return {"name": param.name, "in": "path", "required": True, "schema": _PARAM_SCHEMAS[param.kind]}


def _query_parameter(name: str, schema: Json, required: bool) -> Json:
    # A query string has no null: an optional parameter is one that may be left out.
    options = [option for option in schema.get("anyOf", []) if option != {"type": "null"}]
    plain = {key: value for key, value in schema.items() if key != "anyOf" and not (key == "default" and value is None)}
    if len(options) == 1:
        plain = {**options[0], **plain}
    elif options:
        plain["anyOf"] = options
    description = plain.pop("description", None)
    shown: Json = {"name": name, "in": "query", "required": required, "schema": plain}
    return {**shown, "description": description} if description else shown
