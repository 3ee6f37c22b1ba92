"""The page docs/reference/api.md, made from the description that the server gives of itself, so that the two cannot
disagree: `python -m ksana.api.reference > docs/reference/api.md`."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from typing import Any, Final

from ksana.api import chains, jobs, ops, queue, tasks, v2
from ksana.api.kit.openapi import Json, describe

_PAGES: Final = {
    "v2": "api.md",
    "jobs": "timers.md",
    "tasks": "tasks.md",
    "chains": "chains.md",
    "queue": "queue.md",
    "ops": "api.md#health",
}
_INTRO: Final = """\
# The API, request by request

<!-- Made by ksana.api.reference from the routes; a test compares them. -->

Every request that a server answers, by surface, and below [every shape](#shapes) that is sent or answered.
[The API in examples](../api.md) is the page to begin with. A running server says the same to machines at
`/openapi.json`, and to people at `/docs`.

A scope is what an [API key](../api.md#keys) must have; `admin` has all of them. Whatever is answered with a status of
4xx or 5xx is an [ErrorBody](#errorbody). `?` marks what may be left out.
"""


def render_api_reference() -> str:
    """The page docs/reference/api.md."""
    surfaces = [part.surface() for part in (v2, jobs, tasks, chains, queue, ops)]
    description = describe(surfaces, title="Ksana", version="")
    return _Page(description).text()


class _Page:
    """A description as Markdown."""

    def __init__(self, description: Json) -> None:
        self._description = description
        self._shapes: Json = description["components"]["schemas"]
        self._names = _short_names(list(self._shapes))

    def text(self) -> str:
        parts = [_INTRO]
        for tag in self._description["tags"]:
            parts.append(f"\n## {tag['name']}\n\n{tag['description']}: [in examples](../{_PAGES[tag['name']]}).\n\n")
            parts.append("| request | | query | body | answer | scope |\n|---|---|---|---|---|---|\n")
            parts += self._requests(tag["name"])
        parts.append("\n## Shapes\n")
        for name, shape in sorted(self._shapes.items(), key=lambda item: self._names[item[0]].lower()):
            if "properties" in shape:
                parts.append(self._shape(self._names[name], shape))
        return "".join(parts)

    def _requests(self, tag: str) -> Iterator[str]:
        for path, methods in self._description["paths"].items():
            for method, operation in methods.items():
                if operation["tags"][0] == tag:
                    cells = (
                        f"`{method.upper()} {path}`",
                        operation["summary"],
                        ", ".join(self._query(operation)),
                        self._body(operation),
                        self._answer(operation),
                        f"`{operation['x-scope']}`" if "x-scope" in operation else "none",
                    )
                    yield _row(cells)

    def _query(self, operation: Json) -> Iterator[str]:
        for parameter in operation.get("parameters", []):
            if parameter["in"] == "query":
                yield f"`{parameter['name']}{'' if parameter['required'] else '?'}`"

    def _body(self, operation: Json) -> str:
        body = operation.get("requestBody")
        return "" if body is None else self._content(body) + ("" if body["required"] else "?")

    def _answer(self, operation: Json) -> str:
        good = {status: answer for status, answer in operation["responses"].items() if status < "400"}
        return ", ".join(f"{status} {self._content(answer)}".rstrip() for status, answer in good.items())

    def _content(self, message: Json) -> str:
        for media_type, content in message.get("content", {}).items():
            if media_type == "application/json":
                return self._kind(content["schema"])
            return f"`{media_type}`"
        return ""

    def _shape(self, name: str, shape: Json) -> str:
        told = f"\n{' '.join(shape['description'].split())}\n" if shape.get("description") else ""
        rows = "".join(
            _row((f"`{field}{'' if field in shape['required'] else '?'}`", self._kind(schema), _told(schema)))
            for field, schema in shape["properties"].items()
        )
        return f"\n### {name}\n{told}\n| field | | |\n|---|---|---|\n{rows}"

    def _kind(self, schema: Json) -> str:
        """What a value may be, in a few words."""
        if reference := schema.get("$ref"):
            name = reference.removeprefix("#/components/schemas/")
            shape = self._shapes[name]
            if "properties" in shape:
                return f"[{self._names[name]}](#{_anchor(self._names[name])})"
            return self._kind(shape)
        if options := schema.get("anyOf"):
            return " or ".join(dict.fromkeys(self._kind(option) for option in options))
        if values := schema.get("enum"):
            return ", ".join(f"`{value}`" for value in values)
        match schema.get("type"):
            case "array":
                return f"list of {self._kind(schema.get('items', {}))}"
            case "object":
                inner = schema.get("additionalProperties")
                return f"object of {self._kind(inner)}" if isinstance(inner, dict) and inner else "object"
            case None:
                return "anything"
            case kind:
                return _bounded(str(kind), schema)


def _bounded(kind: str, schema: Json) -> str:
    low = schema.get("minimum", schema.get("minLength"))
    high = schema.get("maximum", schema.get("maxLength"))
    bounds = [f"{word} {bound:,}" for word, bound in (("from", low), ("to", high)) if bound]
    return " ".join([schema.get("format", kind), *bounds])


def _told(schema: Json) -> str:
    found: list[Any] = [schema, *schema.get("anyOf", [])]
    words = [option["description"] for option in found if option.get("description")]
    examples = [f"`{example}`" for option in found for example in option.get("examples", [])]
    default = schema.get("default")
    if default not in (None, "", [], {}):
        words.append(f"default `{str(default).lower() if isinstance(default, bool) else default}`")
    if examples:
        words.append(f"such as {', '.join(examples)}")
    return "; ".join(words)


def _short_names(names: list[str]) -> dict[str, str]:
    """What to call each shape: by the last part of its name, and by where it is from as far as that tells it apart."""
    short: dict[str, str] = {}
    for name in names:
        *rooms, last = name.split(".")
        choices = [last, f"{last} of {'.'.join(rooms[2:3])}", f"{last} of {'.'.join(rooms[2:])}"]
        alike = [other for other in names if other.rsplit(".", 1)[-1] == last]
        level = 0 if len(alike) == 1 else 1 if len({other.split(".")[2] for other in alike}) == len(alike) else 2
        short[name] = choices[level]
    return short


def _anchor(heading: str) -> str:
    return re.sub(r"[^\w-]", "", heading.lower().replace(" ", "-"))


def _row(cells: tuple[str, ...]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |\n"


if __name__ == "__main__":
    sys.stdout.write(render_api_reference())
