"""Runs, jobs and all the rest as the bytes that Redis keeps: what scripts go by stands in front, at fixed places."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any

import msgspec

from ksana.domain.alerts import Alert
from ksana.domain.errors import InvalidArgument
from ksana.domain.jobs import Job
from ksana.domain.moves import storable
from ksana.domain.outcomes import Exchange, Verdict
from ksana.domain.policies import Priority
from ksana.domain.runs import Attempt, Run
from ksana.domain.times import from_micros, to_micros
from ksana.stores.redis.codes import ALERTS, REASONS, STATES, TRIGGERS

_replace = msgspec.structs.replace

NONE = -(1 << 63)
"""The instant that is none."""
NOBODY = -1
"""The id that is none."""

_RUN = struct.Struct("<ccqiqqqqqqqqqqqBcBiiHHHI")
_HAS_INPUT, _HAS_TOKEN, _HAS_STEP, _HAS_HOLDER = 1, 2, 4, 8
_MORE = _HAS_TOKEN | _HAS_STEP | _HAS_HOLDER
_BETWEEN = "\0"
_STATE = {state: letter.encode() for state, letter in STATES.items()}
_REASON = {reason: letter.encode() for reason, letter in REASONS.items()}
_TRIGGER = {trigger: letter.encode() for trigger, letter in TRIGGERS.items()}
_STATE_OF = {letter: state for state, letter in _STATE.items()}
_REASON_OF = {letter: reason for reason, letter in _REASON.items()}
_TRIGGER_OF = {letter: trigger for trigger, letter in _TRIGGER.items()}
_PRIORITY_OF = {priority.value: priority for priority in Priority}


class UnfitError(ValueError):
    """A value that has no place among the bytes; the text says why."""


# Halves of characters, numbers too large, names too long.
_UNFIT = (UnfitError, UnicodeEncodeError, OverflowError, struct.error, RecursionError)


def unfit(error: Exception) -> InvalidArgument:
    return InvalidArgument.of("", f"Redis cannot hold this value: {error}")


@contextmanager
def fitting() -> Iterator[None]:
    """Refuse, in words, values that cannot be written down."""
    try:
        yield
    except _UNFIT as error:
        raise unfit(error) from error


def micros(instant: datetime | None) -> int:
    return NONE if instant is None else to_micros(instant)


def instant(number: int) -> datetime | None:
    return None if number == NONE else from_micros(number)


def packed_instant(at: datetime | None) -> bytes:
    """An instant as it stands inside a value."""
    return struct.pack("<q", micros(at))


def unpacked_instant(value: bytes | None) -> datetime | None:
    return None if value is None else from_micros(struct.unpack("<q", value)[0])


def run_to_value(run: Run) -> bytes:
    """All of a run but its input, which does not change and may be large."""
    surface, queue, kind = run.surface.encode(), run.queue.encode(), run.kind.encode()
    flags = (
        _HAS_INPUT * (run.input is not None)
        | _HAS_TOKEN * (run.callback_token is not None)
        | _HAS_STEP * (run.step is not None)
        | _HAS_HOLDER * (run.holder is not None)
    )
    tail = _BETWEEN.join((run.callback_token or "", run.step or "", run.holder or ""))
    if tail.count(_BETWEEN) != 2:
        raise UnfitError("a NUL in a token, a step or the name of a worker")
    tail_bytes = tail.encode()
    head = _RUN.pack(
        _STATE[run.state],
        _REASON[run.reason],
        run.epoch,
        run.attempt,
        NOBODY if run.node_id is None else run.node_id,
        micros(run.started_at),
        micros(run.deadline_at),
        micros(run.ended_at),
        run.job_version,
        run.id,
        to_micros(run.due_at),
        to_micros(run.created_at),
        NOBODY if run.job_id is None else run.job_id,
        NOBODY if run.parent_id is None else run.parent_id,
        micros(run.slot_at),
        run.priority,
        _TRIGGER[run.trigger],
        flags,
        run.failures,
        run.reclaims,
        len(surface),
        len(queue),
        len(kind),
        len(tail_bytes),
    )
    return b"".join((head, surface, queue, kind, tail_bytes, run.error.encode()))


def run_from_value(value: bytes, input: bytes | None) -> Run:
    (
        state,
        reason,
        epoch,
        attempt,
        node_id,
        started_at,
        deadline_at,
        ended_at,
        job_version,
        id,
        due_at,
        created_at,
        job_id,
        parent_id,
        slot_at,
        priority,
        trigger,
        flags,
        failures,
        reclaims,
        surface_length,
        queue_length,
        kind_length,
        tail_length,
    ) = _RUN.unpack_from(value)
    surface_end = _RUN.size + surface_length
    queue_end = surface_end + queue_length
    kind_end = queue_end + kind_length
    tail_end = kind_end + tail_length
    token = step = holder = None
    if flags & _MORE:
        token_text, step_text, holder_text = value[kind_end:tail_end].decode().split(_BETWEEN)
        token = token_text if flags & _HAS_TOKEN else None
        step = step_text if flags & _HAS_STEP else None
        holder = holder_text if flags & _HAS_HOLDER else None
    return Run(
        id=id,
        job_id=None if job_id == NOBODY else job_id,
        job_version=job_version,
        surface=value[_RUN.size : surface_end].decode(),
        kind=value[queue_end:kind_end].decode(),
        queue=value[surface_end:queue_end].decode(),
        trigger=_TRIGGER_OF[trigger],
        slot_at=instant(slot_at),
        state=_STATE_OF[state],
        reason=_REASON_OF[reason],
        epoch=epoch,
        attempt=attempt,
        failures=failures,
        reclaims=reclaims,
        priority=_PRIORITY_OF[priority],
        due_at=from_micros(due_at),
        deadline_at=instant(deadline_at),
        node_id=None if node_id == NOBODY else node_id,
        created_at=from_micros(created_at),
        started_at=instant(started_at),
        ended_at=instant(ended_at),
        error=value[tail_end:].decode(),
        callback_token=token,
        parent_id=None if parent_id == NOBODY else parent_id,
        step=step,
        input=input,
        holder=holder,
    )


def runs_from_reply(reply: list[Any]) -> list[Run]:
    """Runs as scripts answer them: each value followed by its input."""
    return [run_from_value(value, input) for value, input in zip(reply[::2], reply[1::2], strict=True)]


def has_input(value: bytes) -> bool:
    return bool(value[_FLAGS_AT] & _HAS_INPUT)


_FLAGS_AT = struct.calcsize("<ccqiqqqqqqqqqqqBc")


# Jobs

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


def job_from_value(value: bytes) -> Job:
    _, slot_at, fire_at, _, _, *lengths = _JOB.unpack_from(value)
    job = _decode_job(value[_JOB.size + sum(lengths) :])
    return _replace(job, next_slot_at=instant(slot_at), next_fire_at=instant(fire_at))


def judged_from_value(value: bytes) -> tuple[int, datetime, datetime]:
    """Version, slot and fire instant of a job that has come due."""
    version, slot_at, fire_at = struct.unpack_from("<qqq", value)
    return version, from_micros(slot_at), from_micros(fire_at)


# Attempts


class _Told(msgspec.Struct, array_like=True, frozen=True):
    """An attempt without what went over the wire. Short ones stay below the size at which Redis packs them tightly."""

    number: int
    node_id: int | None
    started_at: int
    ended_at: int
    verdict: Verdict
    timed_out: bool
    code: int | None
    error: str
    result: bytes | None
    exchange: Exchange | None


_encode_told = msgspec.msgpack.Encoder().encode
_decode_told = msgspec.msgpack.Decoder(_Told).decode
_RESULT_IS_BODY, _RESULT_IS_TOLD = b"r", b"-"


def attempt_to_parts(attempt: Attempt) -> list[Any]:
    """The epoch, what is told, what was sent and what came back. A body that is the result, too, is kept once."""
    exchange, result = attempt.exchange, attempt.result
    sent = received = b""
    mark = _RESULT_IS_TOLD
    if exchange is not None:
        sent, received = exchange.request_body, exchange.response_body
        if result is not None and result == received:
            mark, result = _RESULT_IS_BODY, None
        exchange = _replace(
            exchange,
            request_line=storable(exchange.request_line),
            request_headers=storable_headers(exchange.request_headers),
            request_body=b"",
            response_headers=storable_headers(exchange.response_headers),
            response_body=b"",
        )
    told = _Told(
        attempt.number,
        attempt.node_id,
        to_micros(attempt.started_at),
        to_micros(attempt.ended_at),
        attempt.verdict,
        attempt.timed_out,
        attempt.code,
        storable(attempt.error),
        result,
        exchange,
    )
    return [attempt.epoch, mark + _encode_told(told), sent, received]


def storable_headers(headers: dict[str, str]) -> dict[str, str]:
    return {storable(name): storable(value) for name, value in headers.items()}


def attempt_from_parts(
    run_id: int, epoch: int, told: bytes, sent: bytes | None, received: bytes | None, *, is_whole: bool = True
) -> Attempt:
    """The attempt; of one that is not whole, the bodies are left out."""
    one = _decode_told(told[1:])
    exchange, result = one.exchange, one.result
    if told[:1] == _RESULT_IS_BODY:
        result = received or b""
    if exchange is not None and is_whole and (sent or received):
        exchange = _replace(exchange, request_body=sent or b"", response_body=received or b"")
    return Attempt(
        run_id=run_id,
        number=one.number,
        epoch=epoch,
        node_id=one.node_id,
        started_at=from_micros(one.started_at),
        ended_at=from_micros(one.ended_at),
        verdict=one.verdict,
        timed_out=one.timed_out,
        code=one.code,
        error=one.error,
        result=result,
        exchange=exchange,
    )


# Alerts

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
