"""The config of a Celery job: what may be written, the defaults, and every field at fault."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import unquote, urlsplit

import msgspec

from ksana.domain.durations import parse_duration
from ksana.domain.errors import InvalidArgument, Problem
from ksana.targets.checks import not_json, refuse, unknown_fields

KIND: Final = "celery"
DEFAULT_BROKER: Final = "env:CELERY_BROKER_URL"

_FIELDS: Final = ("task", "args", "kwargs", "broker", "backend", "queue", "priority", "expires", "mode")
_MODES: Final = ("sync", "async")
_MOST_PRIORITY: Final = 255
# Celery's own variables, so that nobody can have another of the node's secrets sent somewhere.
_VARIABLE: Final = re.compile(r"env:(CELERY_[A-Z0-9_]+)")
_URL: Final = re.compile(r"[a-z][a-z0-9+]*://\S*")
# The answers of a fleet would come to a queue that only whoever has sent the task can read, once.
_UNREADABLE: Final = ("rpc", "amqp")
_CREDENTIALS: Final = re.compile(r"(://[^:/@\s]*:)[^@\s]*@")
_MASK: Final = "***"


class CeleryConfig(msgspec.Struct, frozen=True):
    """A config that has been checked."""

    task: str
    args: list[Any]
    kwargs: dict[str, Any]
    broker: str
    backend: str | None
    queue: str | None
    priority: int | None
    expires: str | None
    mode: str


def checked(config: dict[str, Any], may_name_hosts: bool) -> CeleryConfig:
    """The config as a value, or InvalidArgument with every problem it has."""
    problems = unknown_fields(KIND, config, _FIELDS)
    task, args, kwargs = config.get("task"), config.get("args", []), config.get("kwargs", {})
    if not isinstance(task, str) or not task.strip():
        problems.append(Problem("task", "is missing; say its name, for example shop.tasks.bill"))
    if not isinstance(args, list | tuple):
        problems.append(Problem("args", "must be a list"))
    if not isinstance(kwargs, dict) or not all(isinstance(name, str) for name in kwargs):
        problems.append(Problem("kwargs", "must be a map of parameter names to values"))
    problems += not_json("args", args) + not_json("kwargs", kwargs)
    broker, backend = config.get("broker", DEFAULT_BROKER), config.get("backend")
    problems += _address_problems("broker", broker, may_name_hosts)
    if backend is not None:
        problems += _address_problems("backend", backend, may_name_hosts)
    queue, priority, expires = config.get("queue"), config.get("priority"), config.get("expires")
    if queue is not None and (not isinstance(queue, str) or not queue):
        problems.append(Problem("queue", "must be the name of a queue"))
    if priority is not None and (type(priority) is not int or not 0 <= priority <= _MOST_PRIORITY):
        problems.append(Problem("priority", f"must be a whole number from 0 to {_MOST_PRIORITY}"))
    problems += _span_problems(expires)
    mode = config.get("mode", _MODES[0])
    if mode not in _MODES:
        problems.append(Problem("mode", "must be sync or async"))
    elif mode == "async" and backend is not None:
        problems.append(Problem("backend", "says how it ended; with mode async a callback does. Leave one of them out"))
    refuse(problems)
    assert isinstance(task, str)
    return CeleryConfig(task.strip(), list(args), dict(kwargs), broker, backend, queue, priority, expires, mode)


def address(said: str, environ: Mapping[str, str], field: str) -> str:
    """The URL that is meant. LookupError if this node does not know it, ValueError if it is of no use."""
    variable = _VARIABLE.fullmatch(said)
    url = said if variable is None else environ.get(variable[1], "").strip()
    if variable is not None and not url:
        raise LookupError(f"{variable[1]} is not set on this node; it says where the {field} is")
    if field == "backend" and (problem := _unreadable(url)):
        raise ValueError(problem)
    return url


def masked(text: str, *urls: str) -> str:
    """The text without the passwords of these addresses, and without those of any other."""
    for url in urls:
        password = urlsplit(url).password
        for spelling in {password or "", unquote(password or "")} - {""}:
            text = re.sub(rf"(?<![\w]){re.escape(spelling)}(?![\w])", _MASK, text)
    return _CREDENTIALS.sub(rf"\1{_MASK}@", text)


def _address_problems(field: str, said: Any, may_name_hosts: bool) -> list[Problem]:
    if not isinstance(said, str):
        return [Problem(field, "must be an address, or env:CELERY_… for one in the environment of the nodes")]
    if _VARIABLE.fullmatch(said):
        return []
    if not _URL.fullmatch(said):
        return [Problem(field, "is no address; write env:CELERY_BROKER_URL, or amqp://host// without a password")]
    if not may_name_hosts:
        return [Problem(field, "a server reachable by others takes addresses from its environment: say env:CELERY_…")]
    if _has_password(said):
        return [Problem(field, "has a password, which whoever may read jobs would see: say env:CELERY_… and set that")]
    problem = _unreadable(said) if field == "backend" else ""
    return [Problem(field, problem)] if problem else []


def _has_password(url: str) -> bool:
    try:
        return urlsplit(url).password is not None or bool(_CREDENTIALS.search(url))
    except ValueError:
        return True


def _unreadable(url: str) -> str:
    scheme = url.partition(":")[0]
    return f"{scheme}:// hands results to their sender alone; use redis://, or a database" * (scheme in _UNREADABLE)


def _span_problems(expires: Any) -> list[Problem]:
    if expires is None:
        return []
    try:
        parse_duration(expires, "expires")
    except InvalidArgument as error:
        return list(error.problems)
    return []
