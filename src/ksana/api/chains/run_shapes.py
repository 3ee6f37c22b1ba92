"""How runs of chains and their nodes look on the wire."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from ksana.api.chains.chain_shapes import PageQuery
from ksana.api.chains.words import RunStatus, run_status_of
from ksana.api.kit import Timestamp, timestamp
from ksana.api.node_rows import NodeRow, NodeStatus, moved_at, node_row, unbegun_row
from ksana.domain.runs import Run
from ksana.engine.chain_verbs import StepStanding

_REASON = 1024


class RunsQuery(PageQuery, frozen=True, kw_only=True):
    """Which runs of a chain, newest first."""

    status: RunStatus | None = None


class RunSummary(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A run of a chain without its dag. `params` is there if the start set any."""

    run_id: str
    chain_id: str
    job_id: str
    job_name: str
    status: RunStatus
    created_at: Timestamp
    updated_at: Timestamp
    started_at: Timestamp | None
    ended_at: Timestamp | None
    last_error: str | None
    params: dict[str, Any] | msgspec.UnsetType = msgspec.UNSET


class RunDetail(RunSummary, frozen=True, kw_only=True, rename="camel"):
    """A run of a chain; `dagJson` is the dag it was started with, whatever became of the chain's."""

    dag_json: str


class Stopped(msgspec.Struct, frozen=True, rename="camel"):
    run_id: str
    status: RunStatus


class Canceled(msgspec.Struct, frozen=True, omit_defaults=True):
    """The answer to a cancel, which is what runs of tasks call a stop. A run that was over already keeps its end, which
    `actual_status` then tells."""

    run_id: str
    status: Literal["CANCELED"]
    actual_status: RunStatus | None = None


class NodeAction(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What somebody says with an act by hand: an artifact (JSON text, or the value) in place of the node's own, and
    why, which becomes the node's last error."""

    artifact_json: Any = None
    reason: Annotated[str, msgspec.Meta(max_length=_REASON)] | None = None


class NodeActed(msgspec.Struct, frozen=True, rename="camel"):
    run_id: str
    node_id: str
    status: NodeStatus
    attempt: int


class _Plan(msgspec.Struct, frozen=True):
    """What is shown of a run's plan. The dag stays text: nobody here looks into it."""

    dag: msgspec.Raw = msgspec.Raw(b"{}")
    params: dict[str, Any] = {}
    name: str = ""


_read_plan = msgspec.json.Decoder(_Plan).decode


def show_summary(run: Run, run_id: str, name: str) -> RunSummary:
    return RunSummary(**_said(run, run_id, name, _read_plan(run.input or b"{}")))


def show_run(run: Run, run_id: str, name: str) -> RunDetail:
    plan = _read_plan(run.input or b"{}")
    return RunDetail(**_said(run, run_id, name, plan), dag_json=bytes(plan.dag).decode())


def _said(run: Run, run_id: str, name: str, plan: _Plan) -> dict[str, Any]:
    return {
        "run_id": run_id,
        "chain_id": str(run.job_id),
        "job_id": str(run.job_id),
        "job_name": plan.name or name,
        "status": run_status_of(run),
        "created_at": timestamp(run.created_at),
        "updated_at": timestamp(moved_at(run)),
        "started_at": timestamp(run.started_at),
        "ended_at": timestamp(run.ended_at),
        "last_error": run.error or None,
        "params": plan.params or msgspec.UNSET,
    }


def show_node(standing: StepStanding, chain_run: Run, run_id: str) -> NodeRow:
    if standing.run is None:
        return unbegun_row(run_id, standing.step.id, chain_run.created_at)
    return node_row(run_id, standing.step.id, standing.run, standing.artifact)
