"""Values to rows and back; those of jobs, runs, moves and attempts have files of their own.

Instants are integer microseconds since 1970 UTC in every database: no zone can go wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from ksana.domain.fires import Gap
from ksana.domain.idempotency import IdempotencyRecord
from ksana.domain.keys import Scope, StoredKey
from ksana.domain.queries import Minute
from ksana.domain.states import Reason, State
from ksana.domain.times import from_micros, to_micros

Row = Sequence[Any]


def micros_or_none(instant: datetime | None) -> int | None:
    return None if instant is None else to_micros(instant)


def instant_or_none(micros: int | None) -> datetime | None:
    return None if micros is None else from_micros(micros)


def storable(text: str) -> str:
    """Text from the world outside as every database takes it: without NUL and without halves of characters."""
    # A result that no database accepts would be offered again for ever, and its whole batch with it.
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}").encode("utf-8", "replace").decode() if text else ""


def gap_to_row(gap: Gap) -> tuple[Any, ...]:
    return (
        gap.job_id,
        to_micros(gap.from_at),
        to_micros(gap.to_at),
        gap.count,
        gap.reason.value,
        to_micros(gap.recorded_at),
    )


def gap_from_row(row: Row) -> Gap:
    job_id, from_at, to_at, slots, reason, recorded_at = row
    return Gap(
        job_id=job_id,
        from_at=from_micros(from_at),
        to_at=from_micros(to_at),
        count=slots,
        reason=Reason(reason),
        recorded_at=from_micros(recorded_at),
    )


def minute_to_row(minute: Minute) -> tuple[Any, ...]:
    return (
        to_micros(minute.minute_at),
        minute.kind,
        minute.state.value,
        minute.count,
        minute.busy_ms,
        minute.late_ms,
    )


def minute_from_row(row: Row) -> Minute:
    minute_at, kind, state, count, busy_ms, late_ms = row
    return Minute(
        minute_at=from_micros(minute_at),
        kind=kind,
        state=State(state),
        count=count,
        busy_ms=busy_ms,
        late_ms=late_ms,
    )


def record_to_row(record: IdempotencyRecord) -> tuple[Any, ...]:
    return (
        record.scope,
        record.key,
        record.fingerprint,
        record.status,
        record.body,
        to_micros(record.created_at),
    )


def record_from_row(row: Row) -> IdempotencyRecord:
    scope, key, fingerprint, status, body, created_at = row
    return IdempotencyRecord(scope, key, bytes(fingerprint), status, bytes(body), from_micros(created_at))


def key_to_row(key: StoredKey) -> tuple[Any, ...]:
    return (
        key.id,
        key.name,
        key.digest,
        " ".join(sorted(key.scopes)),
        to_micros(key.created_at),
        micros_or_none(key.revoked_at),
    )


def key_from_row(row: Row) -> StoredKey:
    id, name, digest, scopes, created_at, revoked_at = row
    return StoredKey(
        id,
        name,
        bytes(digest),
        frozenset(Scope(scope) for scope in scopes.split()),
        from_micros(created_at),
        instant_or_none(revoked_at),
    )
