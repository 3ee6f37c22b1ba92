"""The two spellings of every key: PascalCase as the document's answers have it, snake_case as its requests do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ksana.api.kit.strict_json import read_tree
from ksana.domain.errors import InvalidArgument, KsanaError, Problem

TASK_KEYS: Final = {
    "id": "ID",
    "name": "Name",
    "description": "Description",
    "cron_expr": "CronExpr",
    "timezone": "Timezone",
    "exec_type": "ExecType",
    "http_method": "HTTPMethod",
    "target_url": "TargetURL",
    "body_template": "BodyTemplate",
    "timeout_seconds": "TimeoutSeconds",
    "max_concurrency": "MaxConcurrency",
    "concurrency_policy": "ConcurrencyPolicy",
    "misfire_policy": "MisfirePolicy",
    "catchup_limit": "CatchupLimit",
    "callback_method": "CallbackMethod",
    "callback_timeout_sec": "CallbackTimeoutSec",
    "status": "Status",
    "version": "Version",
    "created_at": "CreatedAt",
    "updated_at": "UpdatedAt",
}
RUN_KEYS: Final = {
    "id": "ID",
    "task_id": "TaskID",
    "scheduled_time": "ScheduledTime",
    "start_time": "StartTime",
    "end_time": "EndTime",
    "status": "Status",
    "attempt": "Attempt",
    "request_body": "RequestBody",
    "response_body": "ResponseBody",
    "error_message": "ErrorMessage",
    "next_retry_time": "NextRetryTime",
    "callback_token": "CallbackToken",
    "callback_deadline": "CallbackDeadline",
    "trace_id": "TraceID",
    "created_at": "CreatedAt",
    "updated_at": "UpdatedAt",
}
# Objects in a request, text in a column: each is read in either form.
_AS_TEXT: Final = {
    "headers": ("HeadersJSON", "headers_json"),
    "retry_policy": ("RetryPolicyJSON", "retry_policy_json"),
}
TRIGGER_KEYS: Final = {"override_body": "OverrideBody", "force_async": "ForceAsync"}
CALLBACK_KEYS: Final = {
    "task_id": "TaskID",
    "run_id": "RunID",
    "status": "Status",
    "data": "Data",
    "error_message": "ErrorMessage",
}


def both(values: Mapping[str, Any], keys: Mapping[str, str]) -> dict[str, Any]:
    """Values under their snake_case keys and, where there is one, under the PascalCase key too."""
    return {**values, **{pascal: values[snake] for snake, pascal in keys.items() if snake in values}}


def snake_task(tree: Any) -> Any:
    """A task as a request has it, in snake_case; what is said twice must be said alike."""
    if not isinstance(tree, dict):
        return tree
    found = dict(tree)
    problems: list[Problem] = []
    for snake, texts in _AS_TEXT.items():
        for name in texts:
            if name in found:
                _take_text(found, snake, name, problems)
    found = _in_snake(found, TASK_KEYS, problems)
    if problems:
        raise InvalidArgument(problems)
    return found


def snake_trigger(tree: Any) -> Any:
    """The body of a trigger in snake_case."""
    return _renamed(tree, TRIGGER_KEYS)


def snake_callback(tree: Any) -> Any:
    """The body of a callback in snake_case; `error` is how other surfaces spell the message."""
    tree = _renamed(tree, CALLBACK_KEYS)
    return _renamed(tree, {"error_message": "error"}) if isinstance(tree, dict) else tree


def _renamed(tree: Any, keys: Mapping[str, str]) -> Any:
    if not isinstance(tree, dict):
        return tree
    problems: list[Problem] = []
    found = _in_snake(tree, keys, problems)
    if problems:
        raise InvalidArgument(problems)
    return found


def _in_snake(tree: dict[str, Any], keys: Mapping[str, str], problems: list[Problem]) -> dict[str, Any]:
    found = dict(tree)
    for snake, pascal in keys.items():
        if pascal not in found:
            continue
        value = found.pop(pascal)
        if found.setdefault(snake, value) != value:
            problems.append(Problem(snake, f"says something else than {pascal}; send one of them"))
    return found


def _take_text(found: dict[str, Any], snake: str, name: str, problems: list[Problem]) -> None:
    text = found.pop(name)
    # The empty text stands for the default, which an object beside it then spells out.
    if text in ("", None):
        found.setdefault(snake, {} if text == "" and snake == "headers" else None)
        return
    try:
        value = read_tree(text.encode()) if isinstance(text, str) else text
    except KsanaError as error:
        problems.append(Problem(name, f"must be JSON in a string: {error.message}"))
        return
    if not isinstance(value, dict):
        problems.append(Problem(name, "must be a JSON object in a string"))
    elif found.setdefault(snake, value) != value:
        problems.append(Problem(snake, f"says something else than {name}; send one of them"))
