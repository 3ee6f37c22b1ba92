"""Objects, settings of queues and entries of the audit as the bytes that Redis keeps: what scripts go by in front."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from ksana.domain.audit import AuditEntry
from ksana.domain.limits import QueueSettings
from ksana.domain.objects import GovernedObject
from ksana.domain.times import to_micros
from ksana.stores.redis.shelves import encode
from ksana.stores.redis.values import UnfitError

_VERSION = struct.Struct("<q")
_LENGTH = struct.Struct("<I")
_BETWEEN = "\0"

_decode_object = msgspec.msgpack.Decoder(GovernedObject).decode
_decode_settings = msgspec.msgpack.Decoder(QueueSettings).decode
_decode_entry = msgspec.msgpack.Decoder(AuditEntry).decode


def _pair(first: str, second: str) -> str:
    if _BETWEEN in first or _BETWEEN in second:
        raise UnfitError("a NUL in what names an object, or what an entry of the audit is about")
    return f"{first}{_BETWEEN}{second}"


def object_key(type: str, id: str) -> str:
    """Where an object stands in order; the keys are in order as texts."""
    return _pair(type, id)


def object_key_parts(key: str) -> tuple[str, str]:
    type, _, id = key.partition(_BETWEEN)
    return type, id


def object_args(governed: GovernedObject) -> Sequence[Any]:
    """An object as scripts take it: what it is called, where it stands in order, when it is due (or nothing), value."""
    due = b"" if governed.next_action_at is None else to_micros(governed.next_action_at)
    value = _VERSION.pack(governed.version) + encode(governed)
    return governed.subject, object_key(governed.type, governed.id), due, value


def objects_args(objects: Iterable[GovernedObject]) -> list[Any]:
    told = [object_args(governed) for governed in objects]
    return [len(told), *(part for one in told for part in one)]


def object_from_value(value: bytes) -> GovernedObject:
    return _decode_object(memoryview(value)[_VERSION.size :])


def settings_to_value(settings: QueueSettings) -> bytes:
    return _VERSION.pack(settings.version) + encode(settings)


def settings_from_value(value: bytes) -> QueueSettings:
    return _decode_settings(memoryview(value)[_VERSION.size :])


def entry_about(subject: str, subject_id: str) -> str:
    """What entries about the same thing are found by."""
    return _pair(subject, subject_id)


def entry_args(entry: AuditEntry) -> Sequence[Any]:
    """An entry of the audit as scripts take it: id, instant and value."""
    about = entry_about(entry.subject, entry.subject_id).encode()
    return entry.id, to_micros(entry.at), _LENGTH.pack(len(about)) + about + encode(entry)


def entries_args(entries: Iterable[AuditEntry]) -> list[Any]:
    told = [entry_args(entry) for entry in entries]
    return [len(told), *(part for one in told for part in one)]


def entry_from_value(value: bytes) -> AuditEntry:
    [length] = _LENGTH.unpack_from(value)
    return _decode_entry(memoryview(value)[_LENGTH.size + length :])
