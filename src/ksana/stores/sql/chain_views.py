"""The read-only views `job_chain_definition`, `job_run`, `job_run_node` and `job_run_checkpoint`: what is stored of
chains and their runs, under the names and columns their document gives."""

from __future__ import annotations

from functools import reduce

from ksana.stores.sql.views import Spelling, select

_UPDATED = ("COALESCE(r.started_at, r.created_at)", "COALESCE(r.ended_at, r.created_at)")


def chain_views(spelling: Spelling) -> dict[str, str]:
    """The words of the migration that creates the views."""
    return {
        "view_job_chain_definition": _definitions(spelling),
        "view_job_run": _runs(spelling),
        "view_job_run_node": _nodes(spelling),
        "view_job_run_checkpoint": _checkpoints(spelling),
    }


def _definitions(spelling: Spelling) -> str:
    document = spelling.document.format("j.definition")

    def number(path: str) -> str:
        return spelling.number.format(spelling.value.format(document, path))

    columns = {
        "chain_id": _text(spelling, "j.id"),
        "name": "j.name",
        "description": spelling.value.format(document, "$.description"),
        "enabled": "j.enabled = 1",
        # What was noted at some version of the job, and every change since.
        "version": (f"COALESCE({number('$.extras.version')}, 1) + j.version - COALESCE({number('$.extras.at')}, 1)"),
        "dag_json": spelling.object.format(document, "$.target.config"),
        "created_at": spelling.instant.format("j.created_at"),
        "updated_at": spelling.instant.format("j.updated_at"),
    }
    return select(columns, "ksana_jobs j WHERE j.surface = 'chains' AND j.deleted_at IS NULL")


def _runs(spelling: Spelling) -> str:
    plan = spelling.document.format("r.input")
    columns = {
        "run_id": _run_id(spelling, "r.id"),
        "chain_id": _text(spelling, "r.job_id"),
        "job_id": _text(spelling, "r.job_id"),
        "job_name": spelling.value.format(plan, "$.name"),
        "status": (
            "CASE WHEN r.state IN ('WAITING', 'SCHEDULED') THEN 'PENDING'"
            " WHEN r.state IN ('RETRYING', 'CALLBACK_PENDING') THEN 'RUNNING'"
            " WHEN r.state IN ('TIMEOUT', 'DEAD_LETTER') THEN 'FAILED'"
            " WHEN r.state = 'CANCELED' THEN 'STOPPED' WHEN r.state = 'MISSED' THEN 'SKIPPED' ELSE r.state END"
        ),
        "dag_json": spelling.object.format(plan, "$.dag"),
        "created_at": spelling.instant.format("r.created_at"),
        "updated_at": spelling.instant.format(spelling.latest.format("r.created_at", *_UPDATED)),
    }
    source = (
        "ksana_runs r JOIN ksana_identity i ON i.one = 1"
        " WHERE r.surface = 'chains' AND r.kind = 'chain' AND r.parent_id IS NULL"
    )
    return select(columns, source)


_NODES = (
    "ksana_runs r JOIN ksana_identity i ON i.one = 1 JOIN ksana_runs p ON p.id = r.parent_id"
    " AND p.surface = 'chains' AND p.kind = 'chain' AND p.parent_id IS NULL"
    " LEFT JOIN ksana_kept k ON k.run_id = r.id"
)


def _nodes(spelling: Spelling) -> str:
    columns = {
        "run_id": _run_id(spelling, "r.parent_id"),
        "node_id": "r.step",
        "status": (
            "CASE WHEN r.state IN ('WAITING', 'SCHEDULED') THEN 'PENDING'"
            " WHEN r.state IN ('CALLBACK_PENDING', 'STOPPING') THEN 'RUNNING'"
            " WHEN r.state IN ('TIMEOUT', 'DEAD_LETTER') THEN 'FAILED'"
            " WHEN r.state = 'CANCELED' THEN 'STOPPED' ELSE r.state END"
        ),
        # A step that somebody wants tried again shows the attempt that is to come.
        "attempt": ("CASE WHEN r.state = 'RETRYING' AND r.reason = 'operator' THEN r.attempt + 1 ELSE r.attempt END"),
        "last_error": "r.error",
        "artifact_json": spelling.text.format("k.artifact"),
        "started_at": spelling.instant.format("r.started_at"),
        "ended_at": spelling.instant.format("r.ended_at"),
    }
    return select(columns, _NODES)


def _checkpoints(spelling: Spelling) -> str:
    columns = {
        "run_id": _run_id(spelling, "r.parent_id"),
        "node_id": "r.step",
        "checkpoint_json": spelling.text.format("k.checkpoint"),
    }
    return select(columns, f"{_NODES} WHERE k.checkpoint IS NOT NULL")


def _text(spelling: Spelling, number: str) -> str:
    return spelling.joined.format(number, "''")


def _run_id(spelling: Spelling, number: str) -> str:
    """The id under which a chain's run is shown: store and run in one, in five groups."""
    store, run = spelling.hex.format("i.value"), spelling.hex.format(number)
    groups = [(store, 1, 8), (store, 9, 4), (store, 13, 4), (run, 1, 4), (run, 5, 12)]
    texts = [f"substr({text}, {start}, {length})" for text, start, length in groups]
    return reduce(lambda left, right: spelling.joined.format(spelling.joined.format(left, "'-'"), right), texts)
