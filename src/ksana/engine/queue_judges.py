"""What becomes of an item by what is said of it, judged by how it stands at that moment."""

from __future__ import annotations

from collections.abc import Callable, Collection
from datetime import datetime, timedelta
from typing import Any

import msgspec

from ksana.domain.errors import InvalidState
from ksana.domain.items import Report, acked, failed, is_acked, item_of, redriven, refuse_stale, released
from ksana.domain.moves import Move
from ksana.domain.runs import Run
from ksana.domain.states import State

Judge = Callable[[Run, datetime], Move | None]
"""What becomes of an item as it stands; None if nothing does. Raises if it must not."""


def acking(token: str | None = None, artifact: bytes | None = None, report: Report | None = None) -> Judge:
    """The worker has done it, if it still holds it; what it says for the second time changes nothing."""

    def judged(run: Run, now: datetime) -> Move | None:
        if is_acked(run, token):
            return None
        refuse_stale(run, token)
        return acked(run, now, artifact, report)

    return judged


def failing(
    error: str,
    token: str | None = None,
    *,
    delay: timedelta = timedelta(0),
    is_final: bool = False,
    report: Report | None = None,
) -> Judge:
    """The worker could not do it, if it still holds it."""

    def judged(run: Run, now: datetime) -> Move:
        refuse_stale(run, token)
        return failed(run, now, error, delay=delay, is_final=is_final, report=report)

    return judged


def redriving(states: Collection[State], after: timedelta = timedelta(0), payload: Any = msgspec.UNSET) -> Judge:
    """It is put back if it ended like this, to come due after so long, with another payload if one is given."""

    def judged(run: Run, now: datetime) -> Move:
        if run.state not in states:
            raise InvalidState(f"the item is {run.state}; there is nothing to put back")
        item = None if payload is msgspec.UNSET else msgspec.structs.replace(item_of(run), payload=payload)
        return redriven(run, now, now + after, item)

    return judged


def releasing(token: str | None) -> Judge:
    """The worker gives it back, if it still holds it."""

    def judged(run: Run, now: datetime) -> Move:
        refuse_stale(run, token)
        return released(run, now)

    return judged
