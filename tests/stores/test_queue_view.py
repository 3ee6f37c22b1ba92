"""The view of items: what the documented table held, to be read only."""

from datetime import timedelta
from typing import Any

import pytest

from ksana.domain.items import Enqueued, Item, Pull, acked, failed, new_item, stored_queue
from ksana.domain.policies import Priority
from ksana.domain.ports import Store
from ksana.stores.sql.statements import Statement
from ksana.stores.sql.store import SqlStore
from tests.stores.builders import HOUR, NOW
from tests.stores.conftest import SQL_STORES
from tests.stores.test_views import instant

COLUMNS = (
    "job_id object_type object_id action run_at priority attempt max_attempts idempotency_key status last_error"
    " queue worker_id"
)
ABOUT = {"object_type": "cognition", "object_id": "认 1", "action": "verify", "idempotency_key": "认 1:verify:x"}


@pytest.mark.parametrize("make_store", SQL_STORES, indirect=True)
async def test_the_table_of_the_document_can_be_read(store: Store) -> None:
    """S-36, X-135: every column of the object, and whatever an item carries."""
    assert isinstance(store, SqlStore)
    about = new_item(1, "governance", Item(None, 5, ABOUT), NOW, due_at=NOW, priority=Priority.HIGH)
    free = [new_item(n, "mail", Item({"n": [n, "'\""]}), NOW, due_at=NOW) for n in (2, 3)]
    await store.enqueue([Enqueued(run) for run in (about, *free)])
    pull = Pull(queue=stored_queue("mail"), now=NOW, limit=9, holder="w", until=NOW + HOUR)
    two, three = (await store.pull(pull)).runs
    await store.turn([acked(two, NOW), failed(three, NOW, "no", delay=timedelta(seconds=300))])

    text = f"SELECT {', '.join(COLUMNS.split())} FROM jobs ORDER BY job_id"
    rows = await store._database.read(lambda tx: tx.rows(Statement(text)))
    seen: list[dict[str, Any]] = [dict(zip(COLUMNS.split(), row, strict=True)) for row in rows]
    assert [instant(row.pop("run_at")) for row in seen] == [NOW, NOW, NOW + timedelta(seconds=300)]
    nothing: dict[str, Any] = dict.fromkeys(ABOUT)
    assert seen == [
        {
            **ABOUT,
            "job_id": "job_1",
            "priority": "high",
            "attempt": 0,
            "max_attempts": 5,
            "status": "queued",
            "last_error": None,
            "queue": "governance",
            "worker_id": None,
        },
        {
            **nothing,
            "job_id": "job_2",
            "priority": "medium",
            "attempt": 0,
            "max_attempts": 3,
            "status": "succeeded",
            "last_error": None,
            "queue": "mail",
            "worker_id": "w",
        },
        {
            **nothing,
            "job_id": "job_3",
            "priority": "medium",
            "attempt": 1,
            "max_attempts": 3,
            "status": "queued",
            "last_error": "no",
            "queue": "mail",
            "worker_id": "w",
        },
    ]
