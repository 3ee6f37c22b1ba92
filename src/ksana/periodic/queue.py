"""Where jobs go when their time has come."""

from __future__ import annotations

from typing import Protocol

from ksana.periodic.schedule import Job


class Queue(Protocol):
    """Anything that takes jobs.

    A scheduler that dies while it enqueues leaves open whether the job arrived. The slot is then enqueued again under
    the same id, so a queue that keeps each id once makes it exactly once, whatever dies when.
    """

    async def enqueue(self, job: Job) -> object:
        """Return once the job is safe; raise if it is not."""
        ...
