"""Brings what code says into the store: one job per definition, without undoing what operators did meanwhile.

Of each property three values count: what code said last, what is stored, and what code says now. An operator has
changed what is not stored as code said last, and it stays so.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

import msgspec

from ksana.domain.errors import AlreadyExists
from ksana.domain.jobs import Job, JobSpec, TargetSpec
from ksana.domain.policies import Misfire, Overlap, Priority, Retry, Timeouts
from ksana.domain.queries import JobQuery
from ksana.domain.schedules import Every, Schedule
from ksana.domain.times import EPOCH
from ksana.engine.acting import acting
from ksana.engine.auditing import Actor
from ksana.engine.engine import Engine
from ksana.periodic.definitions import Definition

SURFACE: Final = "code"

_log = logging.getLogger(__name__)
_replace = msgspec.structs.replace
_PAGE: Final = 500
_APP: Final = "app"
_CODE: Final = "code"


class Said(msgspec.Struct, frozen=True, kw_only=True):
    """What code says of a job: all that is its own to say."""

    target: TargetSpec
    schedule: Schedule | None
    description: str
    tags: tuple[str, ...]
    queue: str
    priority: Priority
    retry: Retry
    overlap: Overlap
    misfire: Misfire
    timeouts: Timeouts


_OWNED: Final = Said.__struct_fields__


async def sync(engine: Engine, definitions: Mapping[str, Definition], app: str, *, prune: bool = False) -> None:
    """Make and change jobs until the store says what these definitions say. AlreadyExists if another app has a job of
    the same name."""
    with acting(Actor(SURFACE)):
        await _sync(engine, definitions, app, prune)


async def _sync(engine: Engine, definitions: Mapping[str, Definition], app: str, prune: bool) -> None:
    known = await _jobs_of_code(engine)
    now = engine.clock.now()
    for name, definition in definitions.items():
        job = known.pop(name, None)
        if job is None:
            job = await _created(engine, _begun(definition.spec, now), app)
        if job is not None:
            await _changed(engine, job, definition.spec, app)
    for job in known.values():
        if job.extras.get(_APP) == app:
            await _left_over(engine, job, prune)


async def _jobs_of_code(engine: Engine) -> dict[str, Job]:
    found: dict[str, Job] = {}
    while True:
        page = await engine.store.find_jobs(JobQuery(surface=SURFACE, offset=len(found), limit=_PAGE))
        found |= {job.ref: job for job in page.items}
        if len(page.items) < _PAGE:
            return found


async def _created(engine: Engine, spec: JobSpec, app: str) -> Job | None:
    """Make the job; if another node was quicker, answer the one it made."""
    said = _said(engine.jobs.checked(spec))
    try:
        await engine.jobs.create(SURFACE, _replace(spec, extras={_APP: app, _CODE: _kept(said)}))
    except AlreadyExists:
        page = await engine.store.find_jobs(JobQuery(surface=SURFACE, ref=spec.ref, limit=1))
        return page.items[0] if page.items else None
    return None


async def _changed(engine: Engine, job: Job, spec: JobSpec, app: str) -> None:
    owner = job.extras.get(_APP)
    if owner != app:
        raise AlreadyExists(f"the job {job.ref!r} belongs to the app {owner!r}; give this one another with name=…")

    await engine.jobs.change(job.id, lambda stored: merge(stored, engine.jobs.checked(spec)))


def merge(stored: Job, spec: JobSpec) -> JobSpec:
    """The job as it should be: what code says now, but for what an operator has changed."""
    last_said, now_said, is_stored = _last_said(stored), _said(spec), _said(stored)
    fields = {
        name: getattr(_begun(spec, stored.created_at), name)
        for name in _OWNED
        if getattr(is_stored, name) != getattr(now_said, name)
        and (last_said is None or getattr(is_stored, name) == getattr(last_said, name))
    }
    return _replace(stored, **fields, extras={**stored.extras, _CODE: _kept(now_said)})


async def _left_over(engine: Engine, job: Job, prune: bool) -> None:
    if prune:
        await engine.jobs.delete(job.id)
        _log.info("job %s is no longer in the code and was deleted", job.ref, extra={"job_id": job.id})
    elif job.enabled:
        _log.warning(
            "job %s is no longer in the code, and its runs will fail: pause it, delete it, or start with prune=True",
            job.ref,
            extra={"job_id": job.id},
        )


def _begun(spec: JobSpec, at: datetime) -> JobSpec:
    """The job with its interval counted from the instant it is made."""
    if not isinstance(spec.schedule, Every):
        return spec
    return _replace(spec, schedule=_replace(spec.schedule, origin_at=at))


def _said(spec: JobSpec) -> Said:
    # Where an interval began to count is nobody's word: it goes on from there for as long as it stays the same.
    return Said(**{name: getattr(_begun(spec, EPOCH), name) for name in _OWNED})


def _kept(said: Said) -> Any:
    # As it will look when it is read back, or the same would seem to have changed.
    return msgspec.json.decode(msgspec.json.encode(said))


def _last_said(job: Job) -> Said | None:
    kept: Any = job.extras.get(_CODE)
    try:
        return msgspec.convert(kept, Said)
    except msgspec.ValidationError:
        # An older program wrote it: code says it all anew.
        return None
