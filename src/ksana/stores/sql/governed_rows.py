"""Objects, what was set for queues, and entries of the audit, to rows and back. What is searched for has a column; the
whole value stands beside it."""

from __future__ import annotations

from typing import Any

import msgspec

from ksana.domain.audit import AuditEntry
from ksana.domain.limits import QueueSettings
from ksana.domain.objects import GovernedObject
from ksana.domain.times import from_micros, to_micros
from ksana.stores.sql.governed_statements import OBJECTS, QUEUES
from ksana.stores.sql.rows import Row, micros_or_none, storable

_encode = msgspec.json.Encoder().encode
_decode_object = msgspec.json.Decoder(GovernedObject).decode
_decode_settings = msgspec.json.Decoder(QueueSettings).decode

_OBJECT_BODY = OBJECTS.names.index("body")
_SETTINGS_BODY = QUEUES.names.index("body")


def object_to_row(governed: GovernedObject) -> tuple[Any, ...]:
    return (
        governed.subject,
        governed.type,
        governed.id,
        governed.version,
        governed.risk.value,
        governed.epistemic.value,
        micros_or_none(governed.next_action_at),
        _encode(governed),
    )


def object_from_row(row: Row) -> GovernedObject:
    return _decode_object(row[_OBJECT_BODY])


def settings_to_row(settings: QueueSettings) -> tuple[Any, ...]:
    return (settings.queue, settings.version, _encode(settings))


def settings_from_row(row: Row) -> QueueSettings:
    return _decode_settings(row[_SETTINGS_BODY])


def entry_to_row(entry: AuditEntry) -> tuple[Any, ...]:
    return (
        entry.id,
        to_micros(entry.at),
        storable(entry.actor),
        entry.action,
        entry.subject,
        entry.subject_id,
        storable(entry.reason),
        entry.before,
        entry.after,
        _storable_or_none(entry.evidence),
        _storable_or_none(entry.request_id),
    )


def _storable_or_none(text: str | None) -> str | None:
    return None if text is None else storable(text)


def entry_from_row(row: Row) -> AuditEntry:
    id, at, actor, action, subject, subject_id, reason, before, after, evidence, request_id = row
    return AuditEntry(
        id=id,
        at=from_micros(at),
        actor=actor,
        action=action,
        subject=subject,
        subject_id=subject_id,
        reason=reason,
        before=None if before is None else bytes(before),
        after=None if after is None else bytes(after),
        evidence=evidence,
        request_id=request_id,
    )
