"""One sample for each way to schedule: what is sent to the server, as anybody could, and what is written in code."""

from __future__ import annotations

from typing import Any, NamedTuple

from ksana.embedded import Ksana

TAG = "demo"
AT_ONCE = frozenset({"demo.broken", "demo.nightly"})
"""Samples that run once as soon as they are there."""


class Sample(NamedTuple):
    """A request that makes a sample, and what it is there to show."""

    path: str
    body: dict[str, Any]
    shows: str


def samples(target: str) -> list[Sample]:
    """Everything that is made by a request; `target` is the address of what they call."""
    return [
        Sample(
            "/jobs",
            {
                "id": "demo.heartbeat",
                "name": "demo.heartbeat",
                "type": "http",
                "http": {"method": "GET", "url": f"{target}/ok"},
                "schedule": {"kind": "every", "every": "5s"},
            },
            "a timer: every 5 seconds",
        ),
        Sample(
            "/api/v1/tasks",
            {
                "name": "demo.report",
                "cron_expr": "*/20 * * * * *",
                "timezone": "Asia/Shanghai",
                "target_url": f"{target}/ok",
                "http_method": "POST",
                "body_template": '{"run": "{{run_id}}", "for": "{{scheduled_time}}"}',
            },
            "a cron task with a zone",
        ),
        Sample(
            "/api/v1/tasks",
            {
                "name": "demo.flaky",
                "cron_expr": "5/30 * * * * *",
                "target_url": f"{target}/flaky",
                "retry_policy": {"max_retries": 3, "initial_delay": 3, "strategy": "fixed"},
            },
            "503, 503, then 200: retries",
        ),
        Sample(
            "/api/v1/tasks",
            {
                "name": "demo.export",
                "cron_expr": "10/30 * * * * *",
                "target_url": f"{target}/export",
                "http_method": "POST",
                "exec_type": "ASYNC",
                "callback_timeout_sec": 60,
            },
            "waits for a callback",
        ),
        Sample(
            "/api/v2/jobs",
            {
                "name": "demo.broken",
                "tags": [TAG],
                "schedule": {"kind": "cron", "expr": "*/2 * * * *", "timezone": "UTC"},
                "target": {"kind": "http", "config": {"method": "POST", "url": f"{target}/broken"}},
            },
            "fails for good: look why",
        ),
        Sample(
            "/api/v1/chains",
            {"name": "demo.nightly", "dagJson": _nightly(target), "schedule": {"every": "1m"}},
            "a chain of five steps",
        ),
    ]


def _nightly(target: str) -> dict[str, Any]:
    return {
        "nodes": [
            {"id": "pull", "type": "print", "cfg": {"rows": [17, 25]}},
            {"id": "dedupe", "type": "sleep", "dependsOn": ["pull"], "cfg": {"for": "2s"}},
            {"id": "clean", "type": "sleep", "dependsOn": ["pull"], "cfg": {"for": "4s"}},
            {
                "id": "load",
                "type": "http",
                "dependsOn": ["dedupe", "clean"],
                "cfg": {"method": "POST", "url": f"{target}/ok"},
            },
            {"id": "mail", "type": "print", "dependsOn": ["load"], "cfg": {"first": "{{pull.artifact.rows.0}}"}},
        ],
    }


def letters() -> list[dict[str, Any]]:
    """Items for the queue; one of them no worker will ever do."""
    to = ["ada@example.com", "nobody", "lin@example.com"]
    return [
        {"queue": "demo.mail", "type": "welcome", "payload": {"to": one}, "max_attempts": 2, "delay_sec": 3 + 2 * n}
        for n, one in enumerate(to)
    ]


def in_code() -> Ksana:
    """What is written in code: a schedule, and the handler of a queue."""
    app = Ksana(name="demo")

    @app.every("15s", name="demo.tick", tags=(TAG,))
    def tick() -> dict[str, str]:
        return {"said": "tick"}

    @app.handler("demo.mail")
    def send(item: Any) -> None:
        if "@" not in item.payload["to"]:
            raise ValueError(f"no such address: {item.payload['to']}")

    return app
