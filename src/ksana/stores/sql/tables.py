"""The tables of the SQL family as far as bulk writing goes. Those of items and of what governs them stand beside their
statements."""

from __future__ import annotations

from typing import NamedTuple


class Table(NamedTuple):
    """A table as far as bulk writing goes: its columns with what they hold ("int", "text", "bytes")."""

    name: str
    columns: tuple[tuple[str, str], ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.columns)

    def only(self, *names: str) -> Table:
        """The same table with some of its columns."""
        held = dict(self.columns)
        return Table(self.name, tuple((name, held[name]) for name in names))


def _table(name: str, columns: str) -> Table:
    pairs = (column.split(":") for column in columns.split())
    return Table(name, tuple((column, kind) for column, kind in pairs))


JOBS = _table(
    "ksana_jobs",
    "id:int surface:text ref:text name:text folded_name:text kind:text enabled:int version:int definition:bytes"
    " created_at:int updated_at:int deleted_at:int resumes_at:int",
)
TAGS = _table("ksana_tags", "tag:text job_id:int")
CURSORS = _table("ksana_cursors", "job_id:int version:int slot_limit:int next_slot_at:int next_fire_at:int")
RUNS = _table(
    "ksana_runs",
    "id:int job_id:int job_version:int surface:text kind:text queue:text made_by:text slot_at:int state:text epoch:int"
    " attempt:int priority:int due_at:int node_id:int created_at:int started_at:int"
    " reason:text failures:int reclaims:int deadline_at:int ended_at:int error:text callback_token:text parent_id:int"
    " step:text input:bytes holder:text subject:text",
)
FRESH_RUNS = RUNS.only(*RUNS.names[:16])
"""What a new run nearly always says; the columns after these have the schema's defaults until something happens."""

FRESH_ITEMS = RUNS.only(
    *("id", "surface", "kind", "queue", "made_by", "state", "priority", "due_at", "created_at", "parent_id", "step"),
    *("input", "subject"),
)
"""The same of a new item of the queue."""

DUE_COLUMNS = RUNS.only(
    *("id", "job_id", "job_version", "surface", "kind", "queue", "made_by", "slot_at", "state", "epoch", "attempt"),
    *("priority", "due_at", "created_at", "started_at", "failures", "reclaims", "callback_token", "parent_id", "step"),
    "input",
)
"""What a claim needs to know of a run; the other columns it sets itself."""

LAST_ATTEMPTS = Table("ksana_runs", (("id", "int"), ("last_attempt", "text")))
"""The attempt that ended a run, if it is nothing but numbers and a line of text, is told in the run's own row."""

ATTEMPTS = _table(
    "ksana_attempts",
    "run_id:int epoch:int number:int node_id:int started_at:int ended_at:int verdict:text timed_out:int code:int"
    " error:text result:bytes",
)
EXCHANGES = _table(
    "ksana_exchanges",
    "run_id:int epoch:int head:bytes request_body:bytes response_body:bytes",
)
KEPT = _table("ksana_kept", "run_id:int artifact:bytes checkpoint:bytes")
CHAINS = _table("ksana_chains", "run_id:int stamp:int")
GAPS = _table("ksana_gaps", "job_id:int from_at:int to_at:int slots:int reason:text recorded_at:int")
TAKEN = _table("ksana_taken", "node_id:int run_id:int epoch:int")
MINUTES = _table(
    "ksana_minutes",
    "minute_at:int kind:text state:text runs:int busy_ms:int late_ms:int",
)
IDEMPOTENCY = _table(
    "ksana_idempotency",
    "scope:text idem_key:text fingerprint:bytes status:int body:bytes created_at:int",
)
KEYS = _table("ksana_keys", "id:text name:text digest:bytes scopes:text created_at:int revoked_at:int")
SEQUENCES = _table("ksana_sequences", "name:text next_id:int")
