"""What workers say of the objects their items are about, gathered until it is settled together with the items."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime

import msgspec

from ksana.domain.errors import InvalidState
from ksana.domain.items import NewItem
from ksana.domain.moves import Move
from ksana.domain.objects import Epistemic, GovernedObject, action_of, written_back
from ksana.domain.runs import Run
from ksana.engine.auditing import Change


class WriteBack(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker says of an object with the end of its item; `follow` makes the item that is to come next."""

    next_action_at: datetime | None = None
    epistemic: Epistemic | None = None
    evidence: str | None = None
    reason: str = ""
    request_id: str | None = None
    follow: Callable[[Run], NewItem] | None = None


class Writing:
    """Several of them, one on top of the other; what is not legal stays out, its item included."""

    def __init__(self, objects: Mapping[str, GovernedObject], now: datetime) -> None:
        self._before = objects
        self._after: dict[str, GovernedObject] = {}
        self._now = now
        self.moves: list[Move] = []
        self.errors: dict[int, InvalidState] = {}
        self.changes: list[Change] = []
        self.follows: list[NewItem] = []

    def add(self, move: Move, write: WriteBack) -> None:
        run = move.run
        assert run.subject is not None
        before = self._after.get(run.subject) or self._before.get(run.subject)
        action = action_of(run.step)
        try:
            after = written_back(
                before or self._unheard_of(run.subject),
                action,
                self._now,
                next_action_at=write.next_action_at,
                epistemic=write.epistemic,
                evidence=write.evidence,
            )
        except InvalidState as error:
            self.errors[run.id] = error
            return
        self.moves.append(move)
        self._after[run.subject] = after
        self.changes.append(
            Change(
                before=before,
                after=after,
                actor=run.holder or "",
                reason=write.reason or f"{action} by item {run.id}",
                evidence=write.evidence,
                request_id=write.request_id,
            )
        )
        if write.follow is not None:
            self.follows.append(write.follow(run))

    def _unheard_of(self, subject: str) -> GovernedObject:
        """An object that was never told of. Nothing is written on top of version 0."""
        type, _, id = subject.partition("/")
        return GovernedObject(type=type, id=id, version=0, created_at=self._now, updated_at=self._now)

    def objects(self) -> list[GovernedObject]:
        """The objects as they end up, each one version above what it was."""
        return [
            msgspec.structs.replace(after, version=before.version + 1 if (before := self._before.get(subject)) else 1)
            for subject, after in self._after.items()
        ]
