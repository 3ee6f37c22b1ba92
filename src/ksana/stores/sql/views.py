"""The read-only views `tasks`, `task_runs` and `async_callbacks`, and how databases spell what views are made of: each
column is said once, the spelling is data. Migrations create views, so a change here needs one that creates them anew.
"""

from __future__ import annotations

from typing import NamedTuple


class Spelling(NamedTuple):
    """Expressions of one database; `{0}` is what they are applied to."""

    document: str
    """Bytes that hold JSON, ready to be looked into."""
    value: str
    """A scalar at a path (`{1}`) of a document, as text; NULL for null."""
    object: str
    """An object or list at a path of a document, as JSON."""
    number: str
    """Text as a whole number."""
    seconds: str
    """A duration in ISO 8601 (`P1DT5S`), as whole seconds."""
    instant: str
    """Microseconds since 1970, as a date and time in UTC."""
    text: str
    """Bytes as text; never an error, whatever they are."""
    hex: str
    """A whole number as sixteen digits in lower case."""
    latest: str
    """The greatest of three, none of them NULL."""
    joined: str
    """Two texts in one."""
    made_object: str
    """The function that makes a JSON object of names and values."""


SQLITE_SPELLING = Spelling(
    document="CAST({0} AS TEXT)",
    value="json_extract({0}, '{1}')",
    object="json_extract({0}, '{1}')",
    number="CAST({0} AS INTEGER)",
    # A cast reads as far as there are digits.
    seconds=(
        "CAST(CASE WHEN {0} LIKE 'P%D%' THEN CAST(substr({0}, 2) AS INTEGER) * 86400 ELSE 0 END"
        " + CASE WHEN {0} LIKE '%T%' THEN CAST(substr({0}, instr({0}, 'T') + 1) AS REAL) ELSE 0 END AS INTEGER)"
    ),
    instant=("strftime('%Y-%m-%d %H:%M:%S', {0} / 1000000, 'unixepoch') || printf('.%06d', {0} % 1000000)"),
    text="CAST({0} AS TEXT)",
    hex="printf('%016x', {0})",
    latest="max({0}, {1}, {2})",
    joined="{0} || {1}",
    made_object="json_object",
)

POSTGRES_SPELLING = Spelling(
    document="CAST(convert_from({0}, 'UTF8') AS jsonb)",
    value="(jsonb_path_query_first({0}, '{1}') #>> '{{}}')",
    object="jsonb_path_query_first({0}, '{1}')",
    number="CAST({0} AS BIGINT)",
    seconds="CAST(FLOOR(EXTRACT(EPOCH FROM CAST({0} AS INTERVAL))) AS BIGINT)",
    instant="(TIMESTAMP '1970-01-01' + {0} * INTERVAL '1 microsecond')",
    text="ksana_text({0})",
    hex="lpad(to_hex({0}), 16, '0')",
    latest="GREATEST({0}, {1}, {2})",
    joined="{0} || {1}",
    made_object="jsonb_build_object",
)

MYSQL_SPELLING = Spelling(
    document="CONVERT({0} USING utf8mb4)",
    value="JSON_VALUE({0}, '{1}')",
    object="JSON_EXTRACT({0}, '{1}')",
    number="CAST({0} AS SIGNED)",
    seconds=(
        "CAST(COALESCE(NULLIF(REGEXP_SUBSTR({0}, '[0-9]+(?=D)'), ''), 0) * 86400"
        " + COALESCE(NULLIF(REGEXP_SUBSTR({0}, '[0-9]+(?=[.0-9]*S)'), ''), 0) AS SIGNED)"
    ),
    instant="TIMESTAMPADD(MICROSECOND, {0}, CAST('1970-01-01' AS DATETIME(6)))",
    text="CONVERT({0} USING utf8mb4)",
    hex="LPAD(LOWER(HEX({0})), 16, '0')",
    latest="GREATEST({0}, {1}, {2})",
    joined="CONCAT({0}, {1})",
    made_object="JSON_OBJECT",
)

TEXT_FUNCTION = (
    # Nothing built in reads bytes as text without failing at the first that are none.
    "CREATE FUNCTION ksana_text(data bytea) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN"
    " RETURN convert_from(data, 'UTF8'); EXCEPTION WHEN OTHERS THEN RETURN encode(data, 'escape'); END $$"
)
NO_FUNCTION = "SELECT 1"


def views(spelling: Spelling, text_function: str = NO_FUNCTION) -> dict[str, str]:
    """The words of the migration that creates the views."""
    return {
        "text_function": text_function,
        "view_tasks": _tasks(spelling),
        "view_task_runs": _task_runs(spelling),
        "view_async_callbacks": _async_callbacks(spelling),
    }


def select(columns: dict[str, str], source: str) -> str:
    return f"SELECT {', '.join(f'{expression} AS {name}' for name, expression in columns.items())} FROM {source}"


def _tasks(spelling: Spelling) -> str:
    document = spelling.document.format("j.definition")

    def value(path: str) -> str:
        return spelling.value.format(document, f"$.{path}")

    def number(path: str) -> str:
        return spelling.number.format(value(path))

    def seconds(path: str) -> str:
        return spelling.seconds.format(value(path))

    columns = {
        "id": "j.id",
        "name": "j.name",
        "description": value("description"),
        "cron_expr": value("schedule.expr"),
        "timezone": value("schedule.timezone"),
        "exec_type": f"UPPER({value('target.config.mode')})",
        "http_method": value("target.config.method"),
        "target_url": value("target.config.url"),
        "headers_json": spelling.object.format(document, "$.target.config.headers"),
        "body_template": value("target.config.body"),
        "timeout_seconds": seconds("timeouts.total"),
        "retry_policy_json": (
            f"CASE WHEN {spelling.object.format(document, '$.extras.retry_policy')} IS NOT NULL THEN"
            f" {spelling.made_object}('max_retries', {number('retry.max_attempts')} - 1,"
            f" 'initial_delay', {seconds('retry.initial_delay')}, 'strategy', {value('retry.strategy')},"
            f" 'max_delay', {seconds('retry.max_delay')}) END"
        ),
        "max_concurrency": number("overlap.max_concurrency"),
        "concurrency_policy": f"UPPER({value('overlap.rule')})",
        "misfire_policy": (
            f"CASE {value('misfire.rule')} WHEN 'fire_once' THEN 'FIRE_NOW' WHEN 'catch_up' THEN 'CATCH_UP_LIMITED'"
            " ELSE 'SKIP' END"
        ),
        "catchup_limit": number("misfire.limit"),
        "callback_method": f"COALESCE({value('extras.callback_method')}, 'POST')",
        "callback_timeout_sec": seconds("timeouts.callback"),
        "status": "CASE WHEN j.enabled = 1 THEN 'ENABLED' ELSE 'DISABLED' END",
        "version": "j.version",
        "created_at": spelling.instant.format("j.created_at"),
        "updated_at": spelling.instant.format("j.updated_at"),
        "deleted": "CASE WHEN j.deleted_at IS NULL THEN 0 ELSE 1 END",
    }
    return select(columns, "ksana_jobs j WHERE j.surface = 'tasks'")


def _task_runs(spelling: Spelling) -> str:
    head = spelling.document.format("e.head")
    columns = {
        "id": "r.id",
        "task_id": "r.job_id",
        "scheduled_time": spelling.instant.format("COALESCE(r.slot_at, r.created_at)"),
        "start_time": spelling.instant.format("r.started_at"),
        "end_time": spelling.instant.format("r.ended_at"),
        "status": (
            "CASE WHEN r.state = 'WAITING' THEN 'SCHEDULED' WHEN r.state = 'MISSED' THEN 'SKIPPED'"
            " WHEN r.state = 'DEAD_LETTER' THEN 'FAILED'"
            " WHEN r.state = 'SUCCESS' AND r.reason = 'callback' THEN 'CALLBACK_SUCCESS'"
            " WHEN r.state = 'TIMEOUT' AND r.reason = 'callback_timeout' THEN 'FAILED_TIMEOUT' ELSE r.state END"
        ),
        "attempt": "CASE WHEN r.attempt < 1 THEN 1 ELSE r.attempt END",
        "request_headers": spelling.object.format(head, "$.request_headers"),
        "request_body": spelling.text.format("e.request_body"),
        "response_code": spelling.number.format(spelling.value.format(head, "$.response_code")),
        "response_body": spelling.text.format("e.response_body"),
        "error_message": "r.error",
        "next_retry_time": f"CASE WHEN r.state = 'RETRYING' THEN {spelling.instant.format('r.due_at')} END",
        "callback_token": "r.callback_token",
        "callback_deadline": spelling.instant.format("r.deadline_at"),
        "trace_id": spelling.joined.format(spelling.hex.format("i.value"), spelling.hex.format("r.id")),
        "created_at": spelling.instant.format("r.created_at"),
        "updated_at": spelling.instant.format(
            spelling.latest.format(
                "r.created_at", "COALESCE(r.started_at, r.created_at)", "COALESCE(r.ended_at, r.created_at)"
            )
        ),
    }
    source = (
        "ksana_runs r JOIN ksana_identity i ON i.one = 1 LEFT JOIN ksana_exchanges e ON e.run_id = r.id"
        " AND e.epoch = (SELECT MAX(n.epoch) FROM ksana_exchanges n WHERE n.run_id = r.id)"
        " WHERE r.surface = 'tasks'"
    )
    return select(columns, source)


def _async_callbacks(spelling: Spelling) -> str:
    columns = {
        "id": "c.id",
        "task_run_id": "c.run_id",
        "received_at": spelling.instant.format("c.received_at"),
        "headers_json": spelling.text.format("c.headers"),
        "body": spelling.text.format("c.body"),
        "status": "c.status",
    }
    return select(columns, "ksana_callbacks c JOIN ksana_runs r ON r.id = c.run_id WHERE r.surface = 'tasks'")
