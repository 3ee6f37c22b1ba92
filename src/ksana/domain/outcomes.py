"""What a target is told about an attempt, and what it answers. Targets speak only these values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

import msgspec


class Verdict(StrEnum):
    """How an attempt ended, in the target's eyes. Whether RETRY leads to another try is the retry policy's business."""

    SUCCESS = "success"
    RETRY = "retry"
    FAIL = "fail"
    WAIT = "wait"
    SKIP = "skip"
    BRANCH = "branch"


class Exchange(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """What was really sent and received, kept whole for the person who has to find out why."""

    request_line: str = ""
    request_headers: dict[str, str] = {}
    request_body: bytes = b""
    response_code: int | None = None
    response_headers: dict[str, str] = {}
    response_body: bytes = b""
    truncated: bool = False


class Outcome(msgspec.Struct, frozen=True, gc=False):
    """The answer of a target to one attempt."""

    verdict: Verdict
    error: str = ""
    timed_out: bool = False
    retry_after: timedelta | None = None
    code: int | None = None
    result: bytes | None = None
    exchange: Exchange | None = None
    checkpoint: bytes | None = None


SUCCESS = Outcome(Verdict.SUCCESS)


class AttemptContext(msgspec.Struct, frozen=True, gc=False):
    """Everything a target may know about the attempt it is asked to make.

    `planned_at` and `run_id` stay the same over all attempts of a run; `fence` rises with every claim, so a target
    that remembers the highest fence it has seen can refuse a delivery from a worker that was presumed dead.

    A step of a chain knows its id, what the steps it needs have handed on (`artifacts`, by their ids), the parameters
    the chain was started with, and where it is done for each item of a list, its `item` and `index`. `checkpoint` is
    what the attempt before this one has saved.
    """

    run_id: int
    job_id: int | None
    job_ref: str
    job_name: str
    planned_at: datetime
    triggered_at: datetime
    attempt: int
    fence: int
    trace_id: str
    timeout: timedelta
    connect_timeout: timedelta
    callback_url: str = ""
    callback_token: str = ""
    input: Any = None
    step: str = ""
    artifacts: Mapping[str, Any] = {}
    params: Mapping[str, Any] = {}
    item: Any = None
    index: int = 0
    checkpoint: Any = None
    keep: Callable[[bytes], None] | None = None

    def save(self, checkpoint: Any) -> None:
        """Leave word of how far this attempt has come: the next one finds it as `checkpoint`. Anything JSON can hold;
        may be called as often as one likes, from any thread."""
        if self.keep is not None:
            self.keep(msgspec.json.encode(checkpoint))

    @property
    def traceparent(self) -> str:
        """Which trace and span the attempt is."""
        return traceparent(self.trace_id, self.fence)


def traceparent(trace_id: str, fence: int) -> str:
    """W3C trace context: one trace per run, one span per attempt."""
    return f"00-{trace_id}-{fence & 0xFFFFFFFFFFFFFFFF:016x}-01"
