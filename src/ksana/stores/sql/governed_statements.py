"""The statements of what governs items: objects, what was set for queues, buckets; and of the audit."""

from __future__ import annotations

from ksana.stores.sql.statements import Statement
from ksana.stores.sql.tables import Table

OBJECTS = Table(
    "ksana_objects",
    (
        ("subject", "text"),
        ("type", "text"),
        ("id", "text"),
        ("version", "int"),
        ("risk", "text"),
        ("epistemic", "text"),
        ("next_action_at", "int"),
        ("body", "bytes"),
    ),
)
QUEUES = Table("ksana_queues", (("queue", "text"), ("version", "int"), ("body", "bytes")))
BUCKETS = Table("ksana_buckets", (("queue", "text"), ("subject", "text"), ("busy_until", "int")))
AUDIT = Table(
    "ksana_audit",
    (
        ("id", "int"),
        ("at", "int"),
        ("actor", "text"),
        ("action", "text"),
        ("subject", "text"),
        ("subject_id", "text"),
        ("reason", "text"),
        ("value_before", "bytes"),
        ("value_after", "bytes"),
        ("evidence", "text"),
        ("request_id", "text"),
    ),
)

# Objects

_OBJECT = ", ".join(OBJECTS.names)
OBJECTS_BY_SUBJECT = Statement(f"SELECT {_OBJECT} FROM ksana_objects WHERE subject IN (:subjects*)")
LOCK_OBJECTS = Statement(
    f"SELECT {_OBJECT} FROM ksana_objects {{by_key}} WHERE subject IN (:subjects*) ORDER BY subject {{for_update}}"
)

# Queues and their buckets

_QUEUE = ", ".join(QUEUES.names)
ALL_QUEUES = Statement(f"SELECT {_QUEUE} FROM ksana_queues ORDER BY queue")
READ_QUEUE = Statement(f"SELECT {_QUEUE} FROM ksana_queues WHERE queue = :queue")
LOCK_QUEUE = Statement(f"SELECT {_QUEUE}, busy_until FROM ksana_queues WHERE queue = :queue {{for_update}}")
FILL_QUEUE_BUCKET = Statement("UPDATE ksana_queues SET busy_until = :busy_until WHERE queue = :queue")
BUCKETS_OF_QUEUE = Statement(
    "SELECT subject, busy_until FROM ksana_buckets WHERE queue = :queue AND subject IN (:subjects*)"
)
EMPTY_BUCKETS = Statement("DELETE FROM ksana_buckets WHERE queue = :queue AND subject IN (:subjects*)")
