"""What operators say of objects and of queues; each change leaves an entry in the audit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from ksana.domain.changes import Overtaken, Settlement
from ksana.domain.errors import InvalidState, NotFound, VersionConflict
from ksana.domain.items import stored_queue
from ksana.domain.limits import QueueSettings
from ksana.domain.objects import GovernedObject, subject_of
from ksana.domain.ports import Clock, Store
from ksana.engine.auditing import Actor, Auditor

_TRIES = 20


class Governor:
    """Objects: get, put. Queues: set, pause, resume. `open_up` wakes whoever waits for items that may be free now."""

    def __init__(self, store: Store, clock: Clock, auditor: Auditor, open_up: Callable[[], None]) -> None:
        self._store = store
        self._clock = clock
        self._auditor = auditor
        self._open_up = open_up

    async def get(self, type: str, id: str) -> GovernedObject:
        subject = subject_of(type, id)
        found = await self._store.get_objects([subject])
        if subject not in found:
            raise NotFound(f"nothing is known of {subject}; PUT it to tell")
        return found[subject]

    async def put(
        self, type: str, id: str, said: dict[str, Any], actor: Actor, version: int | None = None
    ) -> tuple[GovernedObject, bool]:
        """Say what an object is like; what is left unsaid stays as it is, of its gates too. Answer whether it is
        new."""
        subject = subject_of(type, id)
        for _ in range(_TRIES):
            now = self._clock.now()
            before = (await self._store.get_objects([subject])).get(subject)
            if version is not None and version != (before.version if before else 0):
                raise VersionConflict(f"{subject} is at version {before.version if before else 0}, not {version}")
            if before is None:
                after = GovernedObject(type=type, id=id, created_at=now, updated_at=now, **said)
            else:
                kept = {**said, "gates": {**before.gates, **said.get("gates", {})}}
                after = msgspec.structs.replace(before, version=before.version + 1, updated_at=now, **kept)
            entry = await self._auditor.put(actor, before, after, now)
            try:
                await self._store.settle(Settlement(objects=(after,), entries=(entry,)))
            except Overtaken:
                continue
            self._open_up()
            return after, before is None
        raise InvalidState(f"{subject} changes faster than it can be written; try again")

    async def queue(self, name: str) -> QueueSettings:
        """What is set for a queue; nothing, at version 0, if nobody has set anything."""
        stored = stored_queue(name)
        found = [one for one in await self._store.queue_settings() if one.queue == stored]
        return found[0] if found else QueueSettings(queue=stored, version=0, updated_at=self._clock.now())

    async def set_queue(
        self, name: str, said: dict[str, Any], actor: Actor, action: str = "queue.limit", version: int | None = None
    ) -> QueueSettings:
        """Set something for a queue; what is left unsaid stays as it is."""
        for _ in range(_TRIES):
            now = self._clock.now()
            before = await self.queue(name)
            if version is not None and version != before.version:
                raise VersionConflict(f"the queue {name} is at version {before.version}, not {version}")
            after = msgspec.structs.replace(before, version=before.version + 1, updated_at=now, **said)
            entry = await self._auditor.set_queue(actor, action, before if before.version else None, after, now)
            try:
                await self._store.set_queue(after, entry)
            except VersionConflict:
                continue
            self._open_up()
            return after
        raise InvalidState(f"the queue {name} changes faster than it can be set; try again")
