"""Attempts to rows and back, with what went over the wire."""

from __future__ import annotations

from typing import Any

import msgspec

from ksana.domain.outcomes import Exchange, Verdict
from ksana.domain.runs import Attempt
from ksana.domain.times import from_micros, to_micros
from ksana.stores.sql.rows import Row, storable


def attempt_to_row(attempt: Attempt) -> tuple[Any, ...]:
    return (attempt.run_id, *last_attempt_of(attempt)[:-1], attempt.result)


def last_attempt_of(attempt: Attempt) -> tuple[Any, ...]:
    """An attempt as the row of the run it ended tells it."""
    started_at, ended_at, error = attempt.started_at, attempt.ended_at, attempt.error
    micros = to_micros(ended_at)
    return (
        attempt.epoch,
        attempt.number,
        attempt.node_id,
        # What takes no time begins and ends with one instant.
        micros if started_at is ended_at else to_micros(started_at),
        micros,
        attempt.verdict._value_,
        1 if attempt.timed_out else 0,
        attempt.code,
        storable(error) if error else None,
        0 if attempt.result is None else 1,
    )


def is_result_the_answer(attempt: Attempt) -> bool:
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
