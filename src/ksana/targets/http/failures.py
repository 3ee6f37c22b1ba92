"""Why a request brought no answer, as a short sentence for people, from the client's chain of causes."""

from __future__ import annotations

import re
from datetime import timedelta

import msgspec
from pyreqwest.exceptions import (
    BodyDecodeError,
    ClientClosedError,
    DecodeError,
    PyreqwestError,
    ReadTimeoutError,
    RequestTimeoutError,
)

from ksana.targets.http.addresses import Address
from ksana.targets.http.destinations import Destination

_NOT_CONNECTED = "client error (Connect)"
_NO_TCP = "tcp connect error"
_OS_ERROR = re.compile(r" \(os error \d+\)$")


class Failure(msgspec.Struct, frozen=True):
    """What went wrong. `unsent`: not a byte of the request left, so another address may be tried."""

    sentence: str
    timed_out: bool = False
    unsent: bool = False


def failure_of(
    error: PyreqwestError, to: Destination, address: Address, timeout: timedelta, connect_timeout: timedelta
) -> Failure:
    """Read the client's error; `timeout` is what the whole attempt had."""
    peer = _peer(to, address)
    causes = _causes(error)
    last = _OS_ERROR.sub("", causes[-1]) if causes else str(error)
    if _NOT_CONNECTED in causes:
        return _not_connected(causes, last, peer, connect_timeout)
    if isinstance(error, RequestTimeoutError):
        whole = "no complete answer" if isinstance(error, ReadTimeoutError) else "no answer"
        return Failure(f"{whole} within {spoken(timeout)}", timed_out=True)
    if isinstance(error, BodyDecodeError):
        return Failure(f"the answer of {peer} broke off: {last}")
    if isinstance(error, DecodeError):
        return Failure(f"{peer} did not answer in proper HTTP: {last}")
    if isinstance(error, ClientClosedError):
        return Failure(f"the call to {peer} was given up because Ksana is stopping")
    return Failure(f"{peer} broke the connection: {last}")


def spoken(span: timedelta) -> str:
    """A span as people write it."""
    return f"{span.total_seconds():g}s"


def _not_connected(causes: list[str], last: str, peer: str, connect_timeout: timedelta) -> Failure:
    if last == "deadline has elapsed" or "operation timed out" in causes:
        return Failure(f"no connection to {peer} within {spoken(connect_timeout)}", True, True)
    if last == "Connection refused":
        return Failure(f"connection refused by {peer}", unsent=True)
    if _NO_TCP in causes:
        return Failure(f"no connection to {peer}: {last}", unsent=True)
    return Failure(f"TLS with {peer} failed: {last}", unsent=True)


def _peer(to: Destination, address: Address) -> str:
    return to.authority if to.literal is not None else f"{to.authority} ({address})"


def _causes(error: PyreqwestError) -> list[str]:
    details = getattr(error, "details", None)
    causes = details.get("causes") if isinstance(details, dict) else None
    return [cause["message"] for cause in causes or ()]
