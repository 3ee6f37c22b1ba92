"""Why a request brought no answer, as a short sentence for people."""

from __future__ import annotations

import ssl
from datetime import timedelta

import msgspec

from ksana.targets.http.answers import Answer
from ksana.targets.http.pool import Place
from ksana.targets.http.wire import GarbledError, LateError, LostError, StoppedError


class Failure(msgspec.Struct, frozen=True):
    """What went wrong, and what there was of an answer."""

    sentence: str
    timed_out: bool = False
    partial: Answer | None = None


def not_connected(error: OSError, place: Place, timeout: timedelta) -> Failure:
    """No connection came about, so nothing was sent."""
    peer = _peer(place)
    if isinstance(error, TimeoutError):
        return Failure(f"no connection to {peer} within {spoken(timeout)}", timed_out=True)
    if isinstance(error, ConnectionRefusedError):
        return Failure(f"connection refused by {peer}")
    if isinstance(error, ssl.SSLError):
        return Failure(f"TLS with {peer} failed: {getattr(error, 'verify_message', '') or error.reason or error}")
    if error.errno is None and place.scheme == "https":
        return Failure(f"TLS with {peer} failed: it closed the connection during the handshake")
    return Failure(f"no connection to {peer}: {error.strerror or error}")


def lost(error: LostError, place: Place, timeout: timedelta) -> Failure:
    """The request was sent, and no whole answer came."""
    peer = _peer(place)
    if isinstance(error, LateError):
        what = "no answer" if error.partial is None else "no complete answer"
        return Failure(f"{what} within {spoken(timeout)}", timed_out=True, partial=error.partial)
    if isinstance(error, GarbledError):
        return Failure(f"{peer} did not answer in proper HTTP: {error.detail}", partial=error.partial)
    if isinstance(error, StoppedError):
        return Failure(f"the call to {peer} was given up because Ksana is stopping", partial=error.partial)
    if error.partial is not None:
        return Failure(f"the answer of {peer} broke off", partial=error.partial)
    return Failure(f"{peer} broke the connection before it answered")


def spoken(span: timedelta) -> str:
    """A span as people write it."""
    return f"{span.total_seconds():g}s"


def _peer(place: Place) -> str:
    literal = place.host.strip("[]") == place.address
    return f"{place.host}:{place.port}" if literal else f"{place.host}:{place.port} ({place.address})"
