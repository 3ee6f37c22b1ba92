"""Callback tokens. Whoever holds one can end its run, so only a caller who may control runs is shown any: a key that
may merely read finds them masked, wherever they went."""

from __future__ import annotations

from typing import Any

import msgspec

from ksana.api.kit import Call, Scope
from ksana.domain.runs import Attempt

_MASK = "***"

_replace = msgspec.structs.replace


def may_see_tokens(call: Call[Any, Any]) -> bool:
    return call.principal.may(Scope.RUN_CONTROL)


def without_token(attempt: Attempt, token: str) -> Attempt:
    """The attempt as it may be shown to somebody who must not learn the token that went with it."""

    def cleared(text: str) -> str:
        return text.replace(token, _MASK)

    def wiped(data: bytes) -> bytes:
        return data.replace(token.encode(), _MASK.encode())

    exchange = attempt.exchange
    if exchange is not None:
        exchange = _replace(
            exchange,
            request_line=cleared(exchange.request_line),
            request_headers={name: cleared(value) for name, value in exchange.request_headers.items()},
            request_body=wiped(exchange.request_body),
            response_headers={name: cleared(value) for name, value in exchange.response_headers.items()},
            response_body=wiped(exchange.response_body),
        )
    result = None if attempt.result is None else wiped(attempt.result)
    return _replace(attempt, error=cleared(attempt.error), result=result, exchange=exchange)
