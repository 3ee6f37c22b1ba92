"""The views of chains: what the documented tables held, to be read only."""

from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID

import pytest

from ksana.domain.moves import Move, advance
from ksana.domain.plans import ChainPlan
from ksana.domain.ports import Store
from ksana.domain.states import Event, Reason
from ksana.stores.sql.statements import Statement
from ksana.stores.sql.store import SqlStore
from tests.stores.builders import NOW, SECOND, get, put
from tests.stores.conftest import SQL_STORES, MakeStore
from tests.stores.families import FAIL, SUCCEED, a_chain_job, a_chain_run, a_dag, branch, ends
from tests.stores.test_views import instant, parsed

DEFINITION = "chain_id name description enabled version dag_json created_at updated_at"
RUN = "run_id chain_id job_id job_name status dag_json created_at updated_at"
NODE = "run_id node_id status attempt last_error artifact_json started_at ended_at"
CHECKPOINT = "run_id node_id checkpoint_json"
DAG = a_dag("a", "b", "c<a", "d<b")


@pytest.fixture(params=SQL_STORES)
def make_store(request: pytest.FixtureRequest) -> MakeStore:
    made: MakeStore = request.getfixturevalue(f"{request.param}_stores")
    return made


@pytest.fixture
async def store(make_store: MakeStore) -> AsyncIterator[Store]:
    store = make_store()
    await store.open()
    yield store
    await store.close()


async def seen(store: Store, view: str, columns: str, order: str) -> list[dict[str, Any]]:
    assert isinstance(store, SqlStore)
    text = f"SELECT {', '.join(columns.split())} FROM {view} ORDER BY {order}"
    rows = await store._database.read(lambda tx: tx.rows(Statement(text)))
    return [dict(zip(columns.split(), row, strict=True)) for row in rows]


async def test_the_tables_of_the_document_can_be_read(store: Store) -> None:
    """J-43, J-44, J-45, J-46, J-49, J-62, X-101: every column, and the queries of the diagnosis."""
    said = {"surface": "chains", "name": "夜 nightly", "description": "d"}
    chain = a_chain_job(7, DAG, **said, version=5, extras={"version": 2, "at": 4})
    gone = a_chain_job(8, DAG, surface="chains", name="gone", enabled=False, deleted_at=NOW)
    await store.add_jobs([chain, gone])
    plan = ChainPlan(DAG, {}, "夜 nightly")
    await put(store, a_chain_run(1, 7, DAG, surface="chains"))
    await branch(store, 1, plan, 10)
    moves = await ends(store, 1, NOW + SECOND, a=SUCCEED, b=FAIL)
    a, b = moves
    await store.turn([Move(a.epoch, a.run, a.attempt, artifact=b'{"x": 1}', checkpoint=b"[7]"), b])

    [definition] = await seen(store, "job_chain_definition", DEFINITION, "chain_id")
    assert parsed(definition.pop("dag_json")) == DAG
    assert (instant(definition.pop("created_at")), instant(definition.pop("updated_at"))) == (NOW, NOW)
    assert definition == {
        "chain_id": "7", "name": "夜 nightly", "description": "d", "enabled": True, "version": 3
    }  # fmt: skip

    run_id = str(UUID(hex=f"{await store.identity():016x}{1:016x}"))
    [run] = await seen(store, "job_run", RUN, "run_id")
    assert parsed(run.pop("dag_json")) == DAG
    assert instant(run.pop("created_at")) == NOW
    assert instant(run.pop("updated_at")) is not None
    assert run == {
        "run_id": run_id, "chain_id": "7", "job_id": "7", "job_name": "夜 nightly", "status": "RUNNING"
    }  # fmt: skip

    nodes = await seen(store, "job_run_node", NODE, "node_id")
    assert {node["run_id"] for node in nodes} == {run_id}
    states = {node["node_id"]: (node["status"], node["attempt"]) for node in nodes}
    assert states == {"a": ("SUCCESS", 1), "b": ("FAILED", 1), "c": ("PENDING", 0), "d": ("SKIPPED", 0)}
    assert [parsed(node["artifact_json"]) for node in nodes] == [{"x": 1}, None, None, None]
    assert [instant(node["ended_at"]) is not None for node in nodes] == [True, True, False, True]
    assert instant(nodes[0]["started_at"]) == NOW + SECOND

    [checkpoint] = await seen(store, "job_run_checkpoint", CHECKPOINT, "run_id")
    assert parsed(checkpoint.pop("checkpoint_json")) == [7]
    assert checkpoint == {"run_id": run_id, "node_id": "a"}

    again = advance(await get(store, 11), Event.RERUN, NOW, reason=Reason.OPERATOR)
    await store.turn([Move(again.epoch - 1, again)])
    nodes = await seen(store, "job_run_node", NODE, "node_id")
    assert (nodes[1]["status"], nodes[1]["attempt"]) == ("RETRYING", 2)
