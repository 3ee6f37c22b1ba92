"""What differs between the SQL databases, as data. No statement anywhere else asks which database it runs on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ksana.stores.sql.aging import old_rows
from ksana.stores.sql.chain_views import chain_views
from ksana.stores.sql.queue_views import queue_views
from ksana.stores.sql.views import MYSQL_SPELLING, POSTGRES_SPELLING, SQLITE_SPELLING, TEXT_FUNCTION, views

_READY = "state IN ('SCHEDULED', 'RETRYING')"
# Of runs under way, only items that a worker holds have a deadline.
_HELD = "state = 'RUNNING' AND deadline_at IS NOT NULL"


class Dialect(NamedTuple):
    """How one database spells things: `words` fill the braces in statements and migrations."""

    name: str
    words: Mapping[str, str]


def _partial_indexes() -> dict[str, str]:
    """Databases with partial indexes keep each index as small as the rows it is for."""
    return {
        "ready": _READY,
        "waits": "state = 'WAITING'",
        "holds": "state IN ('SCHEDULED', 'RUNNING', 'RETRYING', 'CALLBACK_PENDING', 'STOPPING')",
        "held": "state = 'RUNNING'",
        "by_held": "",
        "slim_indexes": "SELECT 1",
        "drop_job_index": "DROP INDEX ksana_runs_job",
        "add_job_index": "CREATE INDEX ksana_runs_job ON ksana_runs (job_id, id) WHERE job_id IS NOT NULL",
        "drop_answers_index": "DROP INDEX ksana_idempotency_age",
        "add_answers_index": (
            "CREATE INDEX ksana_idempotency_age ON ksana_idempotency (created_at) WHERE scope <> 'queue'"
        ),
        "ready_column": "",
        "ready_index": "queue, priority, due_at, id",
        "live_index": "job_id, state, created_at, id",
        "where_planned": "WHERE next_fire_at IS NOT NULL",
        "where_slot": "WHERE slot_at IS NOT NULL",
        "where_ready": f"WHERE {_READY}",
        "where_live": "WHERE ended_at IS NULL",
        "where_ended": "WHERE ended_at IS NOT NULL",
        "where_held": "WHERE node_id IS NOT NULL",
        "where_deadline": "WHERE deadline_at IS NOT NULL",
        "where_token": "WHERE callback_token IS NOT NULL",
        "where_parent": "WHERE parent_id IS NOT NULL",
        "where_undelivered": "WHERE due_at IS NOT NULL",
        "where_subject": "WHERE subject IS NOT NULL",
        "where_next": "WHERE next_action_at IS NOT NULL",
        "where_resumes": "WHERE resumes_at IS NOT NULL",
        "held_column": "SELECT 1",
        "held_queue": f"{_HELD} AND queue",
        "held_index": "queue, subject",
        "where_handed_out": f"WHERE {_HELD}",
    }


SQLITE = Dialect(
    "sqlite",
    {
        **_partial_indexes(),
        # Nobody gathers statistics here, and without them a job's whole history looks as short as its live runs.
        "by_key": "",
        "by_due": "INDEXED BY ksana_cursors_due",
        "by_ready": "INDEXED BY ksana_runs_ready",
        "by_live": "INDEXED BY ksana_runs_live",
        "by_ended": "INDEXED BY ksana_runs_ended",
        "by_subject": "INDEXED BY ksana_runs_subject",
        "by_handed_out": "INDEXED BY ksana_runs_handed_out",
        "int": "INTEGER",
        "code": "TEXT",
        "name": "TEXT",
        "subject": "TEXT",
        "label": "TEXT",
        "line": "TEXT",
        "text": "TEXT",
        "bytes": "BLOB",
        "table": "",
        "runs_table": "",
        "for_update": "",
        "skip_locked": "",
        "returning_id": "",
        "each_told": "json_each(:told) AS told",
        "told_id": "told.key",
        "position": "instr",
        **old_rows("rowid IN (SELECT rowid FROM {table} WHERE {oldest})"),
        **views(SQLITE_SPELLING),
        **chain_views(SQLITE_SPELLING),
        **queue_views(SQLITE_SPELLING),
    },
)

POSTGRES = Dialect(
    "postgres",
    {
        **_partial_indexes(),
        "by_key": "",
        "by_due": "",
        "by_ready": "",
        "by_live": "",
        "by_ended": "",
        "by_subject": "",
        "by_handed_out": "",
        "int": "BIGINT",
        # Text sorts the same on every server, and the same as in the other databases.
        "code": 'TEXT COLLATE "C"',
        "name": 'TEXT COLLATE "C"',
        "subject": 'TEXT COLLATE "C"',
        "label": 'TEXT COLLATE "C"',
        "line": 'TEXT COLLATE "C"',
        "text": "TEXT",
        "bytes": "BYTEA",
        "table": "",
        # Runs are rewritten at every move: room on the page keeps new versions near, and vacuum follows early.
        "runs_table": "WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05)",
        "for_update": "FOR UPDATE",
        "skip_locked": "FOR UPDATE SKIP LOCKED",
        "returning_id": "RETURNING id",
        "each_told": "json_each_text(CAST(:told AS json)) AS told",
        "told_id": "CAST(told.key AS bigint)",
        "position": "strpos",
        **old_rows("ctid = ANY (ARRAY (SELECT ctid FROM {table} WHERE {oldest}))"),
        **views(POSTGRES_SPELLING, TEXT_FUNCTION),
        **chain_views(POSTGRES_SPELLING),
        **queue_views(POSTGRES_SPELLING),
    },
)


def _innodb(name: str, collation: str) -> Dialect:
    """MySQL and MariaDB differ in what they call the collation for which `a` and `a ` are two names."""
    table = f"ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE {collation}"
    return Dialect(name, {**_INNODB, "table": table, "runs_table": table})


_INNODB = {
    # Without partial indexes a column that is NULL for everything else makes claimable rows findable. An index on
    # the state alone would make SKIP LOCKED lock every row it walks over.
    "ready": "ready = 1",
    "ready_column": f", ready TINYINT AS (CASE WHEN {_READY} THEN 1 END) VIRTUAL",
    "ready_index": "ready, queue, priority, due_at, id",
    "live_index": "job_id, ended_at, state, created_at, id",
    # Every index on a column that a claim or an end changes is written each time, and here none is partial: runs under
    # way are found by their state, and the live ones of a job by a column that changes only when they stop to wait.
    "slim_indexes": (
        "ALTER TABLE ksana_runs"
        " ADD COLUMN waits TINYINT AS (CASE WHEN state = 'WAITING' THEN 1 ELSE 0 END) VIRTUAL,"
        " DROP INDEX ksana_runs_node, DROP INDEX ksana_runs_live,"
        " ADD INDEX ksana_runs_live (job_id, ended_at, waits, created_at, id)"
    ),
    "drop_job_index": "SELECT 1",
    "add_job_index": "SELECT 1",
    # In one statement, as each commits by itself: cut short after it, it may be made again.
    "drop_answers_index": (
        "ALTER TABLE ksana_idempotency DROP INDEX ksana_idempotency_age,"
        " ADD INDEX ksana_idempotency_age (scope, created_at)"
    ),
    "add_answers_index": "SELECT 1",
    "waits": "waits = 1",
    "holds": "waits = 0",
    "held": "state = 'RUNNING' AND ended_at IS NULL",
    "by_held": "FORCE INDEX (ksana_runs_ended)",
    "where_planned": "",
    "where_slot": "",
    "where_ready": "",
    "where_live": "",
    "where_ended": "",
    "where_held": "",
    "where_deadline": "",
    "where_token": "",
    "where_parent": "",
    "where_undelivered": "",
    "where_subject": "",
    "where_next": "",
    "where_resumes": "",
    # What a worker holds is found by the queue it was handed out from, which is NULL for everything else.
    "held_column": (
        f"ALTER TABLE ksana_runs ADD COLUMN held_in VARCHAR(255) AS (CASE WHEN {_HELD} THEN queue END) VIRTUAL"
    ),
    "held_queue": "held_in",
    "held_index": "held_in, subject",
    "where_handed_out": "",
    # A small table is walked whole if nobody forbids it, and a locking read waits for every locked row on its way.
    "by_key": "FORCE INDEX (PRIMARY)",
    "by_due": "FORCE INDEX (ksana_cursors_due)",
    "by_ready": "FORCE INDEX (ksana_runs_ready)",
    "by_live": "FORCE INDEX (ksana_runs_live)",
    "by_ended": "FORCE INDEX (ksana_runs_ended)",
    "by_subject": "FORCE INDEX (ksana_runs_subject)",
    "by_handed_out": "FORCE INDEX (ksana_runs_handed_out)",
    "int": "BIGINT",
    "code": "VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin",
    "name": "VARCHAR(255)",
    # As long as an index with a name in front of it allows.
    "subject": "VARCHAR(512)",
    # A code that people search for by any word: in ASCII, the server would refuse to compare the two.
    "label": "VARCHAR(64)",
    "line": "VARCHAR(1100)",
    "text": "LONGTEXT",
    "bytes": "LONGBLOB",
    "for_update": "FOR UPDATE",
    "skip_locked": "FOR UPDATE SKIP LOCKED",
    "returning_id": "",
    "position": "INSTR",
    **old_rows("{oldest}"),
    **views(MYSQL_SPELLING),
    **chain_views(MYSQL_SPELLING),
    **queue_views(MYSQL_SPELLING),
}

MYSQL = _innodb("mysql", "utf8mb4_0900_bin")
MARIADB = _innodb("mariadb", "utf8mb4_nopad_bin")
