"""Values to rows and back. Instants are integer microseconds since 1970 UTC in every database: no zone can go wrong."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import msgspec

from ksana.domain.fires import Gap
from ksana.domain.idempotency import IdempotencyRecord
from ksana.domain.jobs import Job
from ksana.domain.keys import Scope, StoredKey
from ksana.domain.moves import Move
from ksana.domain.outcomes import Exchange, Verdict
from ksana.domain.policies import Priority
from ksana.domain.queries import Minute
from ksana.domain.runs import Attempt, Run, Trigger
from ksana.domain.states import Reason, State
from ksana.domain.times import from_micros, to_micros

Row = Sequence[Any]

_STATES = {state.value: state for state in State}
_REASONS: dict[str | None, Reason | None] = {None: None} | {reason.value: reason for reason in Reason}
_TRIGGERS = {trigger.value: trigger for trigger in Trigger}
_PRIORITIES = {priority.value: priority for priority in Priority}


def micros_or_none(instant: datetime | None) -> int | None:
    return None if instant is None else to_micros(instant)


def instant_or_none(micros: int | None) -> datetime | None:
    return None if micros is None else from_micros(micros)


def storable(text: str) -> str:
    """Text from the world outside as every database takes it: without NUL and without halves of characters."""
    # A result that no database accepts would be offered again for ever, and its whole batch with it.
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}").encode("utf-8", "replace").decode() if text else ""


# `_value_` is what an enum's `value` answers, without the detour that makes it the dearest part of a row.


def run_to_row(run: Run) -> tuple[Any, ...]:
    return (
        run.id,
        run.job_id,
        run.job_version,
        run.surface,
        run.kind,
        run.queue,
        run.trigger._value_,
        None if run.slot_at is None else to_micros(run.slot_at),
        run.state._value_,
        run.epoch,
        run.attempt,
        run.priority._value_,
        to_micros(run.due_at),
        run.node_id,
        to_micros(run.created_at),
        None if run.started_at is None else to_micros(run.started_at),
        None if run.reason is None else run.reason._value_,
        run.failures,
        run.reclaims,
        micros_or_none(run.deadline_at),
        micros_or_none(run.ended_at),
        run.error,
        run.callback_token,
        run.parent_id,
        run.step,
        run.input,
        run.holder,
    )


FRESH = (None, 0, 0, None, None, "", None, None, None, None, None)
"""The end of the row of a run to which nothing has happened yet."""


def run_from_row(row: Row) -> Run:
    (
        id,
        job_id,
        job_version,
        surface,
        kind,
        queue,
        made_by,
        slot_at,
        state,
        epoch,
        attempt,
        priority,
        due_at,
        node_id,
        created_at,
        started_at,
        reason,
        failures,
        reclaims,
        deadline_at,
        ended_at,
        error,
        callback_token,
        parent_id,
        step,
        input,
        holder,
    ) = row
    return Run(
        id=id,
        job_id=job_id,
        job_version=job_version,
        surface=surface,
        kind=kind,
        queue=queue,
        trigger=_TRIGGERS[made_by],
        slot_at=None if slot_at is None else from_micros(slot_at),
        state=_STATES[state],
        reason=_REASONS[reason],
        epoch=epoch,
        attempt=attempt,
        failures=failures,
        reclaims=reclaims,
        priority=_PRIORITIES[priority],
        due_at=from_micros(due_at),
        deadline_at=None if deadline_at is None else from_micros(deadline_at),
        node_id=node_id,
        created_at=from_micros(created_at),
        started_at=None if started_at is None else from_micros(started_at),
        ended_at=None if ended_at is None else from_micros(ended_at),
        error=error,
        callback_token=callback_token,
        parent_id=parent_id,
        step=step,
        input=input,
        holder=holder,
    )


def claimed_from_rows(rows: Iterable[Row], node_id: int, now: datetime) -> list[Run]:
    """What Event.CLAIM makes of due runs, built in one go."""
    # Runs that come due together mostly have their instants in common.
    known: dict[int, datetime] = {}

    def instant(micros: int) -> datetime:
        found = known.get(micros)
        if found is None:
            found = known[micros] = from_micros(micros)
        return found

    return [
        Run(
            id=id,
            job_id=job_id,
            job_version=job_version,
            surface=surface,
            kind=kind,
            queue=queue,
            trigger=_TRIGGERS[made_by],
            slot_at=None if slot_at is None else instant(slot_at),
            state=State.RUNNING,
            epoch=epoch + 1,
            attempt=attempt + 1,
            failures=failures,
            reclaims=reclaims,
            priority=_PRIORITIES[priority],
            due_at=instant(due_at),
            node_id=node_id,
            created_at=instant(created_at),
            started_at=now if started_at is None else instant(started_at),
            callback_token=callback_token,
            parent_id=parent_id,
            step=step,
            input=input,
        )
        for (
            id,
            job_id,
            job_version,
            surface,
            kind,
            queue,
            made_by,
            slot_at,
            _,
            epoch,
            attempt,
            priority,
            due_at,
            created_at,
            started_at,
            failures,
            reclaims,
            callback_token,
            parent_id,
            step,
            input,
        ) in rows
    ]


class Change(NamedTuple):
    """What a move does to a row, beside raising its epoch. Results of one turn mostly do the same."""

    epoch: int
    state: str
    reason: str | None
    failures: int
    reclaims: int
    due_at: int | None
    deadline_at: int | None
    ended_at: int | None
    error: str
    is_told: bool


About = tuple[Any, ...]
"""What a move does, as values that are cheap to compare; `change_of` makes a Change of it."""


def about(move: Move) -> About:
    run, attempt = move.run, move.attempt
    ended_at = run.ended_at
    return (
        move.epoch,
        run.state._value_,
        None if run.reason is None else run.reason._value_,
        run.failures,
        run.reclaims,
        run.due_at if ended_at is None else None,
        run.deadline_at,
        ended_at,
        run.error,
        # The run's own row tells of the attempt if it was the last one and has no result to keep.
        attempt is not None and ended_at is not None and (attempt.result is None or _is_result_the_answer(attempt)),
    )


def change_of(about: About) -> Change:
    epoch, state, reason, failures, reclaims, due_at, deadline_at, ended_at, error, is_told = about
    return Change(
        epoch,
        state,
        reason,
        failures,
        reclaims,
        micros_or_none(due_at),
        micros_or_none(deadline_at),
        micros_or_none(ended_at),
        error,
        is_told,
    )


def attempt_to_row(attempt: Attempt) -> tuple[Any, ...]:
    return (attempt.run_id, *_said_of(attempt), attempt.result)


def last_attempt_of(attempt: Attempt) -> tuple[Any, ...]:
    """An attempt as the row of the run it ended tells it."""
    return (*_said_of(attempt), int(attempt.result is not None))


def _said_of(attempt: Attempt) -> tuple[Any, ...]:
    return (
        attempt.epoch,
        attempt.number,
        attempt.node_id,
        to_micros(attempt.started_at),
        to_micros(attempt.ended_at),
        attempt.verdict._value_,
        int(attempt.timed_out),
        attempt.code,
        storable(attempt.error) or None,
    )


def _is_result_the_answer(attempt: Attempt) -> bool:
    """What a target answered over the wire is mostly its result too; it is not kept twice."""
    return attempt.exchange is not None and attempt.result is attempt.exchange.response_body


def attempt_row_from_last(row: Row) -> tuple[Any, ...]:
    """The same attempt as a row of its own, followed by whatever follows here."""
    run_id, told, *exchange = row
    *others, is_result_the_answer = msgspec.json.decode(told)
    return (run_id, *others, exchange[-1] if exchange and is_result_the_answer else None, *exchange)


class _ExchangeHead(msgspec.Struct, omit_defaults=True):
    """All of an Exchange but its bodies, which stay bytes in columns of their own."""

    request_line: str = ""
    request_headers: dict[str, str] = {}
    response_code: int | None = None
    response_headers: dict[str, str] = {}
    truncated: bool = False


def exchange_to_row(attempt: Attempt, exchange: Exchange) -> tuple[Any, ...]:
    return (attempt.run_id, attempt.epoch, _head_of(exchange), exchange.request_body, exchange.response_body)


def _head_of(exchange: Exchange) -> bytes:
    head = _ExchangeHead(
        exchange.request_line,
        exchange.request_headers,
        exchange.response_code,
        exchange.response_headers,
        exchange.truncated,
    )
    try:
        encoded = _encode_head(head)
    except UnicodeEncodeError:
        encoded = b""
    if encoded and _ENCODED_NUL not in encoded:
        return encoded
    # Something in it that not every database takes: looked for only now, for it is rare and there are many headers.
    return _encode_head(
        _ExchangeHead(
            storable(exchange.request_line),
            _storable_headers(exchange.request_headers),
            exchange.response_code,
            _storable_headers(exchange.response_headers),
            exchange.truncated,
        )
    )


_encode_head = msgspec.json.Encoder().encode
_ENCODED_NUL = rb"\u0000"


def _storable_headers(headers: dict[str, str]) -> dict[str, str]:
    return {storable(name): storable(value) for name, value in headers.items()}


def attempt_from_row(row: Row) -> Attempt:
    run_id, epoch, number, node_id, started_at, ended_at, verdict, timed_out, code, error, result = row[:11]
    return Attempt(
        run_id=run_id,
        number=number,
        epoch=epoch,
        node_id=node_id,
        started_at=from_micros(started_at),
        ended_at=from_micros(ended_at),
        verdict=Verdict(verdict),
        timed_out=bool(timed_out),
        code=code,
        error=error or "",
        result=result,
        exchange=_exchange_from_row(row[11:]),
    )


def _exchange_from_row(row: Row) -> Exchange | None:
    """What went over the wire; bodies that were left out are empty."""
    head, request_body, response_body = row
    if head is None:
        return None
    kept = msgspec.json.decode(head, type=_ExchangeHead)
    return Exchange(
        request_line=kept.request_line,
        request_headers=kept.request_headers,
        request_body=bytes(request_body or b""),
        response_code=kept.response_code,
        response_headers=kept.response_headers,
        response_body=bytes(response_body or b""),
        truncated=kept.truncated,
    )


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
