"""Runs as the bytes that Redis keeps: what scripts go by stands in front, at fixed places."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from ksana.domain.errors import InvalidArgument
from ksana.domain.policies import Priority
from ksana.domain.runs import Run
from ksana.domain.times import from_micros, to_micros
from ksana.stores.redis.codes import REASONS, STATES, TRIGGERS

NONE = -(1 << 63)
"""The instant that is none."""
NOBODY = -1
"""The id that is none."""

_RUN = struct.Struct("<ccqiqqqqqqqqqqqBcBiiHHHIB")
_HAS_INPUT, _HAS_TOKEN, _HAS_STEP, _HAS_HOLDER, _HAS_SUBJECT = 1, 2, 4, 8, 16
_MORE = _HAS_TOKEN | _HAS_STEP | _HAS_HOLDER | _HAS_SUBJECT
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
    name, surface, queue, kind = b"%d" % run.id, run.surface.encode(), run.queue.encode(), run.kind.encode()
    flags = (
        _HAS_INPUT * (run.input is not None)
        | _HAS_TOKEN * (run.callback_token is not None)
        | _HAS_STEP * (run.step is not None)
        | _HAS_HOLDER * (run.holder is not None)
        | _HAS_SUBJECT * (run.subject is not None)
    )
    beside = [run.callback_token or "", run.step or "", run.holder or ""]
    if run.subject is not None:
        beside.append(run.subject)
    tail = _BETWEEN.join(beside)
    if tail.count(_BETWEEN) != len(beside) - 1:
        raise UnfitError("a NUL in a token, a step, the name of a worker or a subject")
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
        len(name),
    )
    return b"".join((head, name, surface, queue, kind, tail_bytes, run.error.encode()))


def run_from_value(value: bytes, input: bytes | None, at: Callable[[int], Any] = instant) -> Run:
    """The run; `at` makes instants of numbers."""
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
        name_length,
    ) = _RUN.unpack_from(value)
    surface_at = _RUN.size + name_length
    surface_end = surface_at + surface_length
    queue_end = surface_end + queue_length
    kind_end = queue_end + kind_length
    tail_end = kind_end + tail_length
    token, step, holder, subject = _tail(value[kind_end:tail_end], flags) if flags & _MORE else _NO_TAIL
    return Run(
        id=id,
        job_id=None if job_id == NOBODY else job_id,
        job_version=job_version,
        surface=value[surface_at:surface_end].decode(),
        kind=value[queue_end:kind_end].decode(),
        queue=value[surface_end:queue_end].decode(),
        trigger=_TRIGGER_OF[trigger],
        slot_at=at(slot_at),
        state=_STATE_OF[state],
        reason=_REASON_OF[reason],
        epoch=epoch,
        attempt=attempt,
        failures=failures,
        reclaims=reclaims,
        priority=_PRIORITY_OF[priority],
        due_at=at(due_at),
        deadline_at=at(deadline_at),
        node_id=None if node_id == NOBODY else node_id,
        created_at=at(created_at),
        started_at=at(started_at),
        ended_at=at(ended_at),
        error=value[tail_end:].decode(),
        callback_token=token,
        parent_id=None if parent_id == NOBODY else parent_id,
        step=step,
        input=input,
        holder=holder,
        subject=subject,
    )


_Tail = tuple[str | None, str | None, str | None, str | None]
_NO_TAIL: _Tail = (None, None, None, None)


def _tail(kept: bytes, flags: int) -> _Tail:
    """Token, step, holder and subject, which few runs have."""
    token, step, holder, *rest = kept.decode().split(_BETWEEN)
    return (
        token if flags & _HAS_TOKEN else None,
        step if flags & _HAS_STEP else None,
        holder if flags & _HAS_HOLDER else None,
        rest[0] if flags & _HAS_SUBJECT else None,
    )


class _Instants(dict[int, datetime | None]):
    """Instants by their numbers: runs that come together have many in common, and each is made once."""

    def __missing__(self, number: int) -> datetime | None:
        found = self[number] = instant(number)
        return found


def runs_from_reply(reply: list[Any]) -> list[Run]:
    """Runs as scripts answer them: each value followed by its input."""
    at = _Instants().__getitem__
    return [run_from_value(value, input, at) for value, input in zip(reply[::2], reply[1::2], strict=True)]


def has_input(value: bytes) -> bool:
    return bool(value[_FLAGS_AT] & _HAS_INPUT)


_FLAGS_AT = struct.calcsize("<ccqiqqqqqqqqqqqBc")
