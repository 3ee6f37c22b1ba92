"""The statements of items of the queue: who is due, who is held, how the queues stand."""

from __future__ import annotations

from ksana.domain.policies import Priority
from ksana.stores.sql.statements import Statement
from ksana.stores.sql.tables import RUNS, Table

DUE_ITEM_COLUMNS = Table("ksana_runs", (*RUNS.columns, ("is_set", "int")))
"""A due item, and whether something was set for its queue: told with each, because asking apart is a round trip."""


def _due_items(*conditions: str) -> Statement:
    return Statement(
        f"SELECT {', '.join(RUNS.names)}, (SELECT COUNT(*) FROM ksana_queues q WHERE q.queue = :queue) AS is_set"
        " FROM ksana_runs {by_ready} WHERE {ready} AND queue = :queue AND priority = :priority"
        f" AND {' AND '.join(conditions)} ORDER BY due_at, id LIMIT :limit {{skip_locked}}",
        DUE_ITEM_COLUMNS,
    )


# From where one has come to, in two steps: every database finds each in its index.
_DUE = ("due_at <= :now",)
_FREE = "(subject IS NULL OR NOT (subject IN (:full*)))"
_SAME = ("due_at = :after_at", "id > :after_id", _FREE)
_LATER = ("due_at > :after_at", "due_at <= :now", _FREE)
_OF_TYPES = "step IN (:types*)"

DUE_ITEMS = _due_items(*_DUE)
SAME_DUE_ITEMS = _due_items(*_SAME)
LATER_DUE_ITEMS = _due_items(*_LATER)
DUE_ITEMS_OF_TYPES = _due_items(*_DUE, _OF_TYPES)
SAME_DUE_ITEMS_OF_TYPES = _due_items(*_SAME, _OF_TYPES)
LATER_DUE_ITEMS_OF_TYPES = _due_items(*_LATER, _OF_TYPES)
_HAND_OUT = (
    "state = 'RUNNING', reason = NULL, epoch = epoch + 1, attempt = attempt + 1, node_id = NULL,"
    " holder = :holder, deadline_at = :until, started_at = COALESCE(started_at, :at)"
)
PULL_ITEMS = Statement(f"UPDATE ksana_runs {{by_key}} SET {_HAND_OUT} WHERE id IN (:ids*)")


def head_start_of(priority: Priority) -> str:
    """What the value is called by which a pull prefers this priority."""
    return f"head_start_{priority.name.lower()}"


def _pull_free_items(*conditions: str) -> Statement:
    """A whole pull in one step, where a change can tell what it found: of items that nothing governs. The first column
    says whether something does, in which case nothing was handed out; it is told even if nothing is due."""
    due = [
        "(SELECT id, priority, due_at, subject FROM ksana_runs WHERE {ready} AND queue = :queue"
        f" AND priority = {one.value} AND {' AND '.join(conditions)} ORDER BY due_at, id LIMIT :limit {{skip_locked}})"
        for one in Priority
    ]
    found = ", ".join(f"found_{n} AS {one}" for n, one in enumerate(due))
    all_found = " UNION ALL ".join(f"SELECT * FROM found_{n}" for n in range(len(due)))
    starts = " ".join(f"WHEN {one.value} THEN CAST(:{head_start_of(one)} AS {{int}})" for one in Priority)
    return Statement(
        f"WITH {found}, due AS (SELECT id, subject FROM ({all_found}) f"
        f" ORDER BY due_at - CASE priority {starts} END, priority DESC, id LIMIT :limit),"
        " governed AS (SELECT 1 FROM ksana_queues q WHERE q.queue = :queue"
        " UNION ALL SELECT 1 FROM due WHERE subject IS NOT NULL),"
        f" handed AS (UPDATE ksana_runs SET {_HAND_OUT} WHERE id IN (SELECT id FROM due)"
        f" AND NOT EXISTS (SELECT 1 FROM governed) RETURNING {', '.join(RUNS.names)})"
        " SELECT EXISTS (SELECT 1 FROM governed), handed.* FROM (SELECT 1) told LEFT JOIN handed ON TRUE"
    )


PULL_FREE_ITEMS = _pull_free_items(*_DUE)
PULL_FREE_ITEMS_OF_TYPES = _pull_free_items(*_DUE, _OF_TYPES)
_PULLED = "queue >= :first AND queue < :last"
COUNT_QUEUED = Statement(
    "SELECT queue, COUNT(*), SUM(CASE WHEN due_at <= :now THEN 1 ELSE 0 END), MIN(due_at) FROM ksana_runs {by_ready}"
    f" WHERE {{ready}} AND {_PULLED} GROUP BY queue"
)
COUNT_HELD = Statement(
    "SELECT queue, COUNT(*) FROM ksana_runs {by_handed_out} WHERE {held_queue} >= :first AND {held_queue} < :last"
    " GROUP BY queue"
)
_DEAD = f"FROM ksana_runs {{by_ended}} WHERE state = 'DEAD_LETTER' AND ended_at IS NOT NULL AND {_PULLED}"
COUNT_DEAD_ITEMS = Statement(f"SELECT queue, COUNT(*) {_DEAD} GROUP BY queue")
DEAD_BY_ERROR = Statement(
    f"SELECT queue, error, COUNT(*), MIN(ended_at), MAX(ended_at), MAX(id) {_DEAD} GROUP BY queue, error"
    " ORDER BY 3 DESC, queue, error LIMIT :limit"
)
HELD_ITEMS = Statement("SELECT COUNT(*) FROM ksana_runs {by_handed_out} WHERE {held_queue} = :queue")
HELD_BY_SUBJECT = Statement(
    "SELECT subject, COUNT(*) FROM ksana_runs {by_handed_out} WHERE {held_queue} = :queue AND subject IN (:subjects*)"
    " GROUP BY subject"
)
