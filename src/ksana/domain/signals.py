"""What functions say of how it went, where a plain return or an ordinary exception would say too little."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, Final, TypeGuard

import msgspec

from ksana.domain.durations import parse_duration
from ksana.domain.errors import InvalidArgument
from ksana.domain.moves import LONGEST_WAIT
from ksana.domain.times import parse_instant


class Retry(Exception):
    """Try again, after `delay` (`"5m"`, or a timedelta, up to 30 days) if one is given, else when the retry policy
    says."""

    delay: timedelta | None = None

    def __init__(
        self, delay: str | timedelta | None = None, message: str = "the function asked to be tried again"
    ) -> None:
        if isinstance(delay, str):
            delay = parse_duration(delay, "delay")
        if delay is not None and (not isinstance(delay, timedelta) or delay < timedelta(0)):
            raise ValueError(f'Retry takes a span such as "30s", or a timedelta of zero or more, not {delay!r}')
        if delay is not None and delay > LONGEST_WAIT:
            raise ValueError(f"Retry waits {LONGEST_WAIT.days} days at most, not {delay}")
        super().__init__(message)
        self.delay = delay


class Fail(Exception):
    """Do not try again: another attempt would end the same way."""

    def __init__(self, message: str = "the function said that trying again is no use") -> None:
        super().__init__(message)


_TAG_FIELD: Final = "ksana"
_ACK: Final = "ack"


class Ack(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag=_ACK, tag_field=_TAG_FIELD):
    """An item is done: what is handed on, which audit event goes with it, and when the object it is about wants to be
    seen to next.

    The tag tells it from anything else a function may return, once both are JSON.
    """

    output: Any = None
    audit_event_id: str | None = None
    next_action_at: datetime | str | None = None

    def __post_init__(self) -> None:
        if self.audit_event_id is not None and not isinstance(self.audit_event_id, str):
            raise InvalidArgument.of("audit_event_id", f"must be text, not {type(self.audit_event_id).__name__}")
        if not isinstance(self.next_action_at, datetime):
            if self.next_action_at is not None:
                parse_instant(self.next_action_at, "next_action_at")
        elif self.next_action_at.tzinfo is None:
            raise InvalidArgument.of(
                "next_action_at", f"{self.next_action_at} has no zone; say datetime(…, tzinfo=UTC)"
            )


def is_ack(returned: Any) -> TypeGuard[dict[str, Any]]:
    """Whether what a function returned, read back from JSON, was an Ack."""
    return isinstance(returned, dict) and returned.get(_TAG_FIELD) == _ACK
