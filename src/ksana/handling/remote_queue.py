"""The queues of a server elsewhere, to a worker no different from those of its own store."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, Final

import msgspec

from ksana.client import AsyncClient, Conflict, Invalid, Item, NotFound, Unavailable, Unreachable
from ksana.domain import errors, items
from ksana.domain.items import Report
from ksana.domain.moves import Kept
from ksana.domain.policies import Priority
from ksana.domain.runs import Run, Trigger
from ksana.domain.states import State
from ksana.engine.queue_verbs import HungUp

# Who is told to stop waits for the answer to its last question.
_LONGEST_WAIT: Final = timedelta(seconds=1)
_ON_THE_WAY: Final = timedelta(seconds=2)
_PRIORITIES: Final = {"low": Priority.LOW, "medium": Priority.NORMAL, "high": Priority.HIGH}


class RemoteQueue:
    """Pulls over HTTP and says there what came of it. A server that cannot be reached is a store that is away."""

    def __init__(self, client: AsyncClient) -> None:
        self._queue = client.queue

    async def pull(
        self,
        queue: str,
        holder: str,
        *,
        limit: int,
        lease: timedelta,
        wait: timedelta,
        types: tuple[str, ...],
        hung_up: HungUp,
    ) -> list[Run]:
        wait = min(wait, _LONGEST_WAIT)
        asked = self._queue.pull(queue, holder, limit=limit, lease=lease, wait=wait, types=types or None)
        asking, gone = asyncio.ensure_future(asked), asyncio.ensure_future(hung_up())
        try:
            await asyncio.wait({asking, gone}, return_when=asyncio.FIRST_COMPLETED)
            # A server that has not yet seen somebody hang up would hand out items to nobody.
            await asyncio.wait({asking}, timeout=(wait + _ON_THE_WAY).total_seconds())
            if not asking.done():
                return []
            with _as_a_store_says_it():
                runs = [_run_of(item) for item in asking.result()]
            if not gone.done():
                return runs
            for run in runs:
                await self.release(run.id, items.lease_token(run))
            return []
        finally:
            asking.cancel()
            gone.cancel()
            await asyncio.gather(asking, gone, return_exceptions=True)

    async def ack(self, run_id: int, token: str, artifact: bytes | None, report: Report | None) -> None:
        said = report or Report()
        output = msgspec.UNSET if artifact is None else msgspec.json.decode(artifact)
        with _as_a_store_says_it():
            await self._queue.ack(
                _job_id(run_id),
                output=output,
                next_action_at=said.next_action_at,
                audit_event_id=said.audit_event_id,
                lease_token=token,
            )

    async def fail(
        self,
        run_id: int,
        error: str,
        *,
        token: str,
        delay: timedelta = timedelta(0),
        is_final: bool = False,
        report: Report | None = None,
    ) -> None:
        with _as_a_store_says_it():
            if report is not None:
                # The server takes word of how far it came only from somebody who still holds it.
                await self._queue.heartbeat(_job_id(run_id), progress=report.progress, lease_token=token)
            await self._queue.fail(
                _job_id(run_id), error or "it failed", retry_after=delay, retryable=not is_final, lease_token=token
            )

    async def extend(self, run_id: int, lease: timedelta, token: str, report: Report | None) -> None:
        progress = None if report is None else report.progress
        with _as_a_store_says_it():
            await self._queue.heartbeat(_job_id(run_id), lease=lease, progress=progress, lease_token=token)

    async def release(self, run_id: int, token: str) -> None:
        with _as_a_store_says_it():
            await self._queue.release(_job_id(run_id), lease_token=token)

    async def kept(self, run_ids: Iterable[int]) -> dict[int, Kept]:
        with _as_a_store_says_it():
            found = {run_id: await self._queue.get(_job_id(run_id)) for run_id in run_ids}
        return {
            run_id: Kept(run_id=run_id, checkpoint=msgspec.json.encode(Report(item.progress)))
            for run_id, item in found.items()
            if item.progress is not None
        }


@contextmanager
def _as_a_store_says_it() -> Iterator[None]:
    try:
        yield
    except (Unreachable, Unavailable) as error:
        raise errors.StoreUnavailable(str(error)) from error
    except Conflict as error:
        raise errors.StaleLease(str(error)) from error
    except NotFound as error:
        raise errors.NotFound(str(error)) from error
    except Invalid as error:
        raise errors.InvalidArgument(error.problems or [errors.Problem("", error.message)]) from error


def _job_id(run_id: int) -> str:
    return f"job_{run_id}"


def _run_of(item: Item) -> Run:
    """The item as a run that this worker holds."""
    id = int(item.job_id.removeprefix("job_"))
    return Run(
        id=id,
        surface=items.QUEUE,
        kind=items.KIND,
        queue=items.stored_queue(item.queue),
        trigger=Trigger.ENQUEUE,
        state=State.RUNNING,
        # The token of a lease names the hand-out, which is what an attempt is.
        attempt=int((item.lease_token or "").rpartition(".")[2] or item.attempt + 1),
        failures=item.attempt,
        priority=_PRIORITIES[item.priority],
        due_at=item.run_at,
        deadline_at=item.lease_until,
        created_at=item.created_at or item.run_at,
        started_at=item.started_at,
        error=item.last_error or "",
        step=item.type,
        input=msgspec.json.encode(items.Item(item.payload, item.max_attempts, _extras(item))),
        holder=item.worker_id,
        subject=None if item.group_key is None else items.subject_of_key(item.group_key),
    )


def _extras(item: Item) -> dict[str, Any]:
    names = ("object_type", "object_id", "action", "idempotency_key")
    return {name: value for name in names if (value := getattr(item, name)) is not None}
