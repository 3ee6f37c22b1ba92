"""Attempts as the bytes that Redis keeps: what is told of one, and beside it what was sent and what came back."""

from __future__ import annotations

from typing import Any

import msgspec

from ksana.domain.moves import storable
from ksana.domain.outcomes import Exchange, Verdict
from ksana.domain.runs import Attempt
from ksana.domain.times import from_micros, to_micros

_replace = msgspec.structs.replace


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
