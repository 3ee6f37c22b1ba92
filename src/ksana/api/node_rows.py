"""Nodes of a run as the JobChain document shows them. A run that is no chain's has one, so that both kinds of runs can
be looked at in the same way."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Final

import msgspec

from ksana.api.kit import Timestamp, timestamp
from ksana.domain.runs import Run
from ksana.domain.states import Reason, State


class NodeStatus(StrEnum):
    """Where a node of a run stands."""

    PENDING = "PENDING"
    RUNNING = "RUNNING"
    RETRYING = "RETRYING"
    SUCCESS = "SUCCESS"
    FAILED = "FAILED"
    SKIPPED = "SKIPPED"
    STOPPED = "STOPPED"


class NodeRow(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A node of a run; `artifactJson` is what it hands on, as JSON text."""

    run_id: str
    node_id: str
    status: NodeStatus
    attempt: int
    last_error: str | None
    artifact_json: str | None
    started_at: Timestamp | None
    ended_at: Timestamp | None
    updated_at: Timestamp


_STATUSES: Final = {
    State.WAITING: NodeStatus.PENDING,
    State.SCHEDULED: NodeStatus.PENDING,
    State.RUNNING: NodeStatus.RUNNING,
    State.RETRYING: NodeStatus.RETRYING,
    State.CALLBACK_PENDING: NodeStatus.RUNNING,
    State.STOPPING: NodeStatus.RUNNING,
    State.SUCCESS: NodeStatus.SUCCESS,
    State.FAILED: NodeStatus.FAILED,
    State.TIMEOUT: NodeStatus.FAILED,
    State.DEAD_LETTER: NodeStatus.FAILED,
    State.CANCELED: NodeStatus.STOPPED,
    State.SKIPPED: NodeStatus.SKIPPED,
    State.MISSED: NodeStatus.SKIPPED,
}


def node_row(run_id: str, node_id: str, run: Run, artifact: bytes | None = None) -> NodeRow:
    """The node that this run carries out."""
    return NodeRow(
        run_id=run_id,
        node_id=node_id,
        status=_STATUSES[run.state],
        attempt=attempt_of(run),
        last_error=run.error or None,
        artifact_json=None if artifact is None else artifact.decode(),
        started_at=timestamp(run.started_at),
        ended_at=timestamp(run.ended_at),
        updated_at=timestamp(moved_at(run)),
    )


def unbegun_row(run_id: str, node_id: str, since: datetime) -> NodeRow:
    """A node of a run that has not begun."""
    return NodeRow(
        run_id=run_id,
        node_id=node_id,
        status=NodeStatus.PENDING,
        attempt=0,
        last_error=None,
        artifact_json=None,
        started_at=None,
        ended_at=None,
        updated_at=timestamp(since),
    )


def attempt_of(run: Run) -> int:
    """How often a node was tried. A retry asked for by hand counts from the moment it was asked for."""
    return run.attempt + (run.state is State.RETRYING and run.reason is Reason.OPERATOR)


def moved_at(run: Run) -> datetime:
    """The last instant a run tells of."""
    return max(at for at in (run.created_at, run.started_at, run.ended_at) if at is not None)
