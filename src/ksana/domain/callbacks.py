"""Callbacks: what the outside world says about a run, what that changes, and the ledger that keeps every one of them.

The first word on how a run ended counts; whatever comes later changes nothing and is kept as ignored. A word on how far
the run has come is kept beside the run, and puts the deadline off only if it asks for that.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from enum import StrEnum

import msgspec

from ksana.domain.alerts import Alert
from ksana.domain.moves import LONGEST_WAIT, Move, call_back, put_off
from ksana.domain.policies import DEFAULT_CALLBACK_TIMEOUT
from ksana.domain.runs import Run
from ksana.domain.states import State

MESSAGE_LENGTH = 1024
LEDGER_LENGTH = 100
"""How many callbacks of a run are kept: whoever holds a token may call as often as they like."""
TOKEN_LENGTH = 32

_SECRET_HEADERS = frozenset({"authorization", "proxy-authorization", "cookie", "x-api-key", "x-callback-token"})
_MASK = "***"


class CallbackStatus(StrEnum):
    """Whether a callback counted."""

    RECEIVED = "RECEIVED"
    IGNORED = "IGNORED"


class Word(msgspec.Struct, frozen=True, kw_only=True):
    """What a callback says: how the run ended (`succeeded`, None while it has not), how far it has come (`progress`,
    from 0 to 1, and `message`), and by how much the wait for its end is to be put off."""

    succeeded: bool | None = None
    error: str = ""
    progress: float | None = None
    message: str = ""
    extend: timedelta | None = None


class Letter(msgspec.Struct, frozen=True):
    """A callback as it came over the wire."""

    headers: dict[str, str] = {}
    body: bytes = b""


class CallbackRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the ledger; `note` says why a callback was ignored."""

    id: int
    run_id: int
    received_at: datetime
    status: CallbackStatus
    note: str = ""
    headers: dict[str, str] = {}
    body: bytes = b""


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """How far a run has come, as it was last told, and by which attempt.

    `limit_at` is the instant beyond which the wait of that attempt cannot be put off; None until somebody tries.
    """

    run_id: int
    attempt: int
    fraction: float | None
    message: str
    reported_at: datetime
    limit_at: datetime | None = None


class Judgement(msgspec.Struct, frozen=True):
    """What a callback changes. With `ignored`, nothing; `refused` says that the sender is to be told so."""

    move: Move | None = None
    progress: Progress | None = None
    ignored: str = ""
    refused: bool = False


class Heard(msgspec.Struct, frozen=True):
    """A callback with all it changes, to be stored together."""

    record: CallbackRecord
    move: Move | None = None
    progress: Progress | None = None
    alerts: tuple[Alert, ...] = ()
    hooks: tuple[str, ...] = ()

    @property
    def needs_room(self) -> bool:
        """Whether the ledger keeps it only while it has room. What ended a run is always kept."""
        return self.move is None or not self.move.run.state.is_final


def judge(
    run: Run,
    word: Word,
    now: datetime,
    *,
    known: Progress | None = None,
    patience: timedelta = DEFAULT_CALLBACK_TIMEOUT,
    token_ttl: timedelta = LONGEST_WAIT,
) -> Judgement:
    """What a callback changes about the run as it is. `patience` is how long its job lets it wait."""
    if run.state.is_final:
        return Judgement(ignored=f"the run was {run.state} already")
    if run.callback_token is None:
        return Judgement(ignored="the run ends by its target's answer, not by a callback", refused=True)
    if run.state not in (State.RUNNING, State.CALLBACK_PENDING):
        # What an earlier attempt set going may still report, but the next attempt is owed: its word will count.
        return Judgement(ignored=f"the run is {run.state}; no attempt of it awaits a callback", refused=True)
    progress = _progress(run, word, now, known)
    if word.succeeded is not None:
        ended = call_back(run, word.succeeded, now, word.error)
        return Judgement(Move(run.epoch, ended, frees_slot=True), progress)
    if word.extend is None or run.deadline_at is None:
        return Judgement(None, progress)
    limit_at = known.limit_at if known is not None and known.attempt == run.attempt else None
    limit_at = limit_at or run.deadline_at - min(patience, token_ttl) + token_ttl
    progress = msgspec.structs.replace(progress or _silent(run, now, known), limit_at=limit_at)
    deadline_at = min(run.deadline_at + word.extend, limit_at)
    if deadline_at <= run.deadline_at:
        return Judgement(None, progress)
    return Judgement(Move(run.epoch, put_off(run, deadline_at)), progress)


def _progress(run: Run, word: Word, now: datetime, known: Progress | None) -> Progress | None:
    if word.progress is None and not word.message:
        return None
    before = _silent(run, now, known)
    return msgspec.structs.replace(
        before,
        fraction=before.fraction if word.progress is None else round(word.progress, 6),
        message=word.message[:MESSAGE_LENGTH],
        reported_at=now,
    )


def _silent(run: Run, now: datetime, known: Progress | None) -> Progress:
    """What is known of this attempt's progress before it says more."""
    if known is not None and known.attempt == run.attempt:
        return known
    return Progress(run_id=run.id, attempt=run.attempt, fraction=None, message="", reported_at=now)


def masked_headers(headers: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Headers as the ledger may keep them: names in lower case, secrets masked."""
    return {
        name.lower(): _MASK if name.lower() in _SECRET_HEADERS or "signature" in name.lower() else value
        for name, value in headers
    }
