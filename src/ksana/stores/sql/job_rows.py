"""Jobs and their cursors to rows and back."""

from __future__ import annotations

from typing import Any

import msgspec

from ksana.domain.jobs import Job
from ksana.domain.times import to_micros
from ksana.stores.sql.rows import Row, instant_or_none, micros_or_none

_encode_job = msgspec.json.Encoder().encode
_decode_job = msgspec.json.Decoder(Job).decode


def job_to_row(job: Job) -> tuple[Any, ...]:
    # The cursor has a table of its own and is read from there: a copy inside the definition would only go stale.
    definition = msgspec.structs.replace(job, next_slot_at=None, next_fire_at=None)
    return (
        job.id,
        job.surface,
        # Deleted jobs give their ref back; NULLs do not collide.
        job.ref if job.ref and job.deleted_at is None else None,
        job.name,
        job.name.casefold(),
        job.target.kind,
        int(job.enabled),
        job.version,
        _encode_job(definition),
        to_micros(job.created_at),
        to_micros(job.updated_at),
        micros_or_none(job.deleted_at),
        micros_or_none(job.resumes_at),
    )


def cursor_to_row(job: Job) -> tuple[Any, ...]:
    return (
        job.id,
        job.version,
        job.overlap.limit,
        micros_or_none(job.next_slot_at),
        micros_or_none(job.next_fire_at),
    )


def job_from_row(row: Row) -> Job:
    _, definition, _, next_slot_at, next_fire_at = row
    return msgspec.structs.replace(
        _decode_job(definition),
        next_slot_at=instant_or_none(next_slot_at),
        next_fire_at=instant_or_none(next_fire_at),
    )
