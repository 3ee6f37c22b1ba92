"""Changes that count only on top of what they were worked out from: new values of jobs, and settlements that belong
together. Whoever was overtaken reads again and repeats."""

from __future__ import annotations

from datetime import datetime

import msgspec

from ksana.domain.alerts import Alert
from ksana.domain.audit import AuditEntry
from ksana.domain.fires import Gap
from ksana.domain.items import Enqueued
from ksana.domain.jobs import Job
from ksana.domain.moves import Move
from ksana.domain.objects import GovernedObject
from ksana.domain.states import Reason, State


class JobChange(msgspec.Struct, frozen=True, kw_only=True):
    """A new value for a job, which counts only if the stored version is still `version`.

    `cancels` names the states in which its runs are canceled in the same commit, for `reason`; `gap` is recorded with
    it. The cursor moves on its own between reading and changing a job, so it is overwritten only if `moves_cursor` says
    so, and only if it still stands on `cursor_was` (where that is given): what the change says about slots not yet
    fired was worked out from there.
    """

    version: int
    job: Job
    moves_cursor: bool = False
    cursor_was: datetime | msgspec.UnsetType | None = msgspec.UNSET
    cancels: frozenset[State] = frozenset()
    reason: Reason | None = None
    gap: Gap | None = None


class CursorMoved(Exception):
    """A job fired between reading and changing it; read it again and repeat the change."""


class Settlement(msgspec.Struct, frozen=True, kw_only=True):
    """What belongs together: moves with their alerts, objects that change with them, items that follow, and entries of
    the audit. An object counts only on top of the version just below its own; one of version 1 is new."""

    moves: tuple[Move, ...] = ()
    alerts: tuple[Alert, ...] = ()
    hooks: tuple[str, ...] = ()
    objects: tuple[GovernedObject, ...] = ()
    items: tuple[Enqueued, ...] = ()
    entries: tuple[AuditEntry, ...] = ()


class Overtaken(Exception):
    """Something moved between reading it and settling what was made of it; read it again and repeat."""
