"""What an answer means for the run: the verdict of its status, when to come back, a sentence if it is bad."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from http import HTTPStatus

import msgspec

from ksana.domain.outcomes import Verdict

_EXCERPT = 200
_LONGEST_WAIT = timedelta(days=365)


class Answer(msgspec.Struct, frozen=True):
    """A response as it was read. Header names are in lower case."""

    status: int
    headers: dict[str, str]
    body: bytes
    truncated: bool


def verdict_of(status: int, is_async: bool) -> Verdict:
    """2xx is good, what may pass by itself is tried again, the rest needs a person."""
    if 200 <= status < 300:
        return Verdict.WAIT if is_async else Verdict.SUCCESS
    if status in (408, 429) or 500 <= status < 600:
        return Verdict.RETRY
    return Verdict.FAIL


def retry_after(headers: Mapping[str, str], now: datetime) -> timedelta | None:
    """How long the target asks us to wait, in seconds or until a date; None if it does not say so."""
    text = headers.get("retry-after", "").strip()
    if not text:
        return None
    if text.isascii() and text.isdigit():
        return min(timedelta(seconds=int(text[:9])), _LONGEST_WAIT)
    try:
        at = parsedate_to_datetime(text)
    except ValueError:
        return None
    # A date without a zone means UTC (RFC 9110, 5.6.7).
    aware = at if at.tzinfo is not None else at.replace(tzinfo=UTC)
    return min(max(aware - now, timedelta()), _LONGEST_WAIT)


def sentence(answer: Answer, request_line: str) -> str:
    """`503 Service Unavailable from POST http://…: the beginning of the body`."""
    words = " ".join(answer.body[: 4 * _EXCERPT].decode("utf-8", "replace").split())
    head = f"{status_line(answer.status)} from {request_line}"
    return f"{head}: {words[:_EXCERPT]}" if words else head


def status_line(status: int) -> str:
    """The number, with its name if it has one."""
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return str(status)
