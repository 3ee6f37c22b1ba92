"""Small things that are kept in the order of their keys: what their keys and values look like."""

from __future__ import annotations

from typing import Any

import msgspec

from ksana.domain.callbacks import CallbackRecord, Progress
from ksana.domain.fires import Gap
from ksana.domain.idempotency import IdempotencyRecord
from ksana.domain.items import SCOPE
from ksana.domain.keys import StoredKey
from ksana.domain.moves import storable
from ksana.domain.queries import Minute
from ksana.domain.states import State
from ksana.domain.times import from_micros, to_micros
from ksana.stores.redis.attempt_values import storable_headers

_OFFSET = 10**17
"""Added to instants inside keys, so that those before 1970 are in order, too."""
_INSTANT_LENGTH = 18

encode = msgspec.msgpack.Encoder().encode
decode_gap = msgspec.msgpack.Decoder(Gap).decode
decode_answer = msgspec.msgpack.Decoder(IdempotencyRecord).decode
decode_callback = msgspec.msgpack.Decoder(CallbackRecord).decode
decode_progress = msgspec.msgpack.Decoder(Progress).decode
decode_key = msgspec.msgpack.Decoder(StoredKey).decode


def _placed(micros: int) -> str:
    return f"{micros + _OFFSET:0{_INSTANT_LENGTH}}"


def _unplaced(text: str) -> int:
    return int(text) - _OFFSET


def gap_key(job_id: int, from_at: int, reason: str) -> str:
    return f"{job_id:016}{_placed(from_at)}{reason}"


def gap_key_parts(key: str) -> tuple[int, int, str]:
    end = 16 + _INSTANT_LENGTH
    return int(key[:16]), _unplaced(key[16:end]), key[end:]


def gap_args(gap: Gap) -> list[Any]:
    """A gap as scripts take it: key, value, job, first slot, when it was recorded."""
    from_at = to_micros(gap.from_at)
    key = gap_key(gap.job_id, from_at, gap.reason.value)
    return [key, encode(gap), gap.job_id, from_at, to_micros(gap.recorded_at)]


def answer_key(scope: str, key: str) -> str:
    return f"{scope}\0{key}"


def answer_args(record: IdempotencyRecord | None) -> list[Any]:
    if record is None:
        return [""]
    # Keys of items are never forgotten.
    forgotten_by = b"" if record.scope == SCOPE else to_micros(record.created_at)
    return [answer_key(record.scope, record.key), encode(record), forgotten_by]


def answer_key_parts(text: str) -> tuple[str, str]:
    scope, _, key = text.partition("\0")
    return scope, key


def minute_key(minute_at: int, kind: str, state: str) -> str:
    return f"{_placed(minute_at)}{kind}\0{state}"


def minute_key_parts(key: str) -> tuple[int, str, str]:
    kind, _, state = key[_INSTANT_LENGTH:].partition("\0")
    return _unplaced(key[:_INSTANT_LENGTH]), kind, state


def minute_to_value(minute: Minute) -> str:
    return f"{minute.count} {minute.busy_ms} {minute.late_ms}"


def minute_from(key: bytes, value: bytes) -> Minute:
    minute_at, kind, state = minute_key_parts(key.decode())
    count, busy_ms, late_ms = map(int, value.split())
    return Minute(
        minute_at=from_micros(minute_at),
        kind=kind,
        state=State(state),
        count=count,
        busy_ms=busy_ms,
        late_ms=late_ms,
    )


def callback_to_value(record: CallbackRecord) -> bytes:
    return encode(msgspec.structs.replace(record, note=storable(record.note), headers=storable_headers(record.headers)))


def progress_to_value(progress: Progress) -> bytes:
    return encode(msgspec.structs.replace(progress, message=storable(progress.message)))
