"""The body of a request: sent byte for byte unless it has markers, or has to carry where to call back."""

from __future__ import annotations

from typing import Any

import msgspec

from ksana.targets.http import templates
from ksana.targets.http.templates import Place, Template, Values

JSON = "application/json"
TEXT = "text/plain; charset=utf-8"
_FORM = "application/x-www-form-urlencoded"


class Body(msgspec.Struct, frozen=True):
    """A body before the attempt. `content_type` is inferred; None where it depends on what is filled in."""

    content: bytes
    template: Template | None
    content_type: str | None

    def fill(self, values: Values, given: Any) -> bytes:
        """The bytes of this attempt."""
        return self.content if self.template is None else self.template.fill(values, given).encode()


def body_of(text: str, declared_type: str | None) -> Body:
    """Compile a body. The job's Content-Type, if any, says how inserted values are escaped."""
    template = _template(text, declared_type)
    content = text.encode()
    if template is None:
        return Body(content, None, inferred_type(content))
    return Body(content, template, JSON if _is_json_with_dummies(template) else None)


def inferred_type(content: bytes) -> str:
    """The Content-Type of a body that came without one; empty if there is no body."""
    if not content:
        return ""
    return JSON if _is_container(content) else TEXT


def with_callback(content: bytes, url: str, token: str) -> bytes:
    """The body with where to call back, if it is empty or a JSON object; keys that are there already stay."""
    if not content:
        return msgspec.json.encode({"callback_url": url, "callback_token": token})
    try:
        value = msgspec.json.decode(content)
    except (ValueError, RecursionError):
        return content
    if not isinstance(value, dict):
        return content
    missing = {k: v for k, v in (("callback_url", url), ("callback_token", token)) if k not in value}
    if not missing:
        return content
    # Written into the text, so that everything else arrives as the job has it.
    head = content.rstrip().removesuffix(b"}")
    return head + (b"," if value else b"") + msgspec.json.encode(missing)[1:]


def _template(text: str, declared_type: str | None) -> Template | None:
    essence = (declared_type or "").split(";")[0].strip().lower()
    if essence == JSON or essence.endswith(("+json", "/json")):
        return templates.in_json(text)
    if essence == _FORM:
        return templates.in_text(text, Place.FORM)
    if not essence:
        as_json = templates.in_json(text)
        if as_json is not None and _is_json_with_dummies(as_json):
            return as_json
    return templates.in_text(text)


def _is_json_with_dummies(template: Template) -> bool:
    return _is_container(templates.with_dummies(template).encode())


def _is_container(content: bytes) -> bool:
    if content.lstrip()[:1] not in (b"{", b"["):
        return False
    try:
        msgspec.json.decode(content, type=msgspec.Raw)
    except (ValueError, RecursionError):
        return False
    return True
