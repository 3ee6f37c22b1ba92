"""Jobs as the bytes that Redis keeps: version, cursor and limit in front, then names to be found by, then all of it."""

from __future__ import annotations

import struct
from datetime import datetime

import msgspec

from ksana.domain.jobs import Job
from ksana.domain.times import to_micros
from ksana.stores.redis.values import instant, micros

_replace = msgspec.structs.replace

_JOB = struct.Struct("<qqqicHHH")
NO_LIMIT = -1
_encode_job = msgspec.json.Encoder().encode
_decode_job = msgspec.json.Decoder(Job).decode


def job_to_value(job: Job) -> bytes:
    surface, ref, name = job.surface.encode(), job.ref.encode(), job.name.encode()
    limit = job.overlap.limit
    head = _JOB.pack(
        job.version,
        micros(job.next_slot_at),
        micros(job.next_fire_at),
        NO_LIMIT if limit is None else limit,
        b"x" if job.deleted_at is not None else b"1" if job.enabled else b"0",
        len(surface),
        len(ref),
        len(name),
    )
    # The cursor stands in front and moves there: a copy inside the definition would only go stale.
    definition = _encode_job(_replace(job, next_slot_at=None, next_fire_at=None))
    return b"".join((head, surface, ref, name, definition))


def resume_arg(job: Job) -> int | bytes:
    """When its pause ends by itself, as scripts are told."""
    return b"" if job.resumes_at is None else to_micros(job.resumes_at)


def job_from_value(value: bytes) -> Job:
    _, slot_at, fire_at, _, _, *lengths = _JOB.unpack_from(value)
    job = _decode_job(value[_JOB.size + sum(lengths) :])
    return _replace(job, next_slot_at=instant(slot_at), next_fire_at=instant(fire_at))


def judged_from_value(value: bytes) -> tuple[int, datetime, datetime] | None:
    """Version, slot and fire instant of a job; None if nothing is planned."""
    version, *cursor = struct.unpack_from("<qqq", value)
    slot_at, fire_at = map(instant, cursor)
    return None if slot_at is None or fire_at is None else (version, slot_at, fire_at)
