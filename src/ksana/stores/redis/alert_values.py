"""Alerts as the bytes that Redis keeps: what changes in front, the error at the end."""

from __future__ import annotations

import struct
from typing import Any

from ksana.domain.alerts import Alert
from ksana.domain.moves import storable
from ksana.domain.times import from_micros
from ksana.stores.redis.codes import ALERTS
from ksana.stores.redis.values import instant, micros, packed_instant

_ALERT = struct.Struct("<qqicI")
_ALERT_STATE = {state: letter.encode() for state, letter in ALERTS.items()}
_ALERT_STATE_OF = {letter: state for state, letter in _ALERT_STATE.items()}


def alert_key(run_id: int, epoch: int, hook: str) -> str:
    """What an alert is found by; the keys are in order as texts."""
    return f"{run_id:016}{epoch:016}{hook}"


def alert_key_parts(key: str) -> tuple[int, int, str]:
    return int(key[:16]), int(key[16:32]), key[32:]


def alert_args(alert: Alert) -> list[Any]:
    """An alert as scripts take it: key and value."""
    return [alert_key(alert.run_id, alert.epoch, alert.hook), alert_to_value(alert)]


def alert_to_value(alert: Alert) -> bytes:
    told = packed_instant(alert.created_at) + alert.body
    head = _ALERT.pack(
        micros(alert.due_at),
        micros(alert.ended_at),
        alert.attempts,
        _ALERT_STATE[alert.state],
        _ALERT.size + len(told),
    )
    return b"".join((head, told, storable(alert.error).encode()))


def alert_from_value(key: bytes, value: bytes) -> Alert:
    due_at, ended_at, attempts, state, error_at = _ALERT.unpack_from(value)
    run_id, epoch, hook = alert_key_parts(key.decode())
    body_at = _ALERT.size + 8
    return Alert(
        run_id=run_id,
        epoch=epoch,
        hook=hook,
        body=value[body_at:error_at],
        created_at=from_micros(struct.unpack_from("<q", value, _ALERT.size)[0]),
        due_at=instant(due_at),
        attempts=attempts,
        state=_ALERT_STATE_OF[state],
        ended_at=instant(ended_at),
        error=value[error_at:].decode(),
    )
