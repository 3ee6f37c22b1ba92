"""How callbacks look on the wire."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Any, Final, Literal

import msgspec

from ksana.api.kit.errors import InvalidJson
from ksana.api.kit.strict_json import JsonReader
from ksana.api.tasks.moments import Moment, moment
from ksana.api.tasks.spellings import snake_callback
from ksana.api.tasks.words import RunStatus
from ksana.domain.callbacks import CallbackRecord, CallbackStatus, Word
from ksana.domain.errors import InvalidArgument

_MONTH: Final = 30 * 86_400

Id = Annotated[int, msgspec.Meta(ge=1)]


class CallbackInput(msgspec.Struct, frozen=True, kw_only=True):
    """How a run ended (`status`, `data`, `error_message`), or how far it has come (`progress` from 0 to 1, `message`).

    `extend_sec` asks for that much more time before the wait is given up.
    """

    status: Literal["SUCCESS", "FAILED"] | None = None
    data: Any = None
    error_message: Annotated[str, msgspec.Meta(max_length=65_536)] | None = None
    progress: Annotated[float, msgspec.Meta(ge=0, le=1)] | None = None
    message: Annotated[str, msgspec.Meta(max_length=1024)] | None = None
    extend_sec: Annotated[int, msgspec.Meta(ge=1, le=_MONTH)] | None = None


class CallbackByIds(CallbackInput, frozen=True, kw_only=True):
    """The same by whoever has no token: it names the task and the run."""

    task_id: Id
    run_id: Id


class CalledBack(msgspec.Struct, frozen=True):
    """Where the run stands after the callback."""

    run_id: int
    final_status: RunStatus


class CallbackView(msgspec.Struct, frozen=True, kw_only=True):
    """One callback that came for a run, and whether it counted."""

    id: int
    task_run_id: int
    received_at: Moment
    status: CallbackStatus
    note: str
    headers: dict[str, str]
    body: str


_BY_TOKEN: Final[JsonReader[CallbackInput]] = JsonReader(CallbackInput, snake_callback)
_BY_IDS: Final[JsonReader[CallbackByIds]] = JsonReader(CallbackByIds, snake_callback)


def read_callback(raw: bytes) -> CallbackInput:
    """What the holder of a token says. The bytes are kept as they came, so they are read here and not by the route."""
    return _telling(_BY_TOKEN.read(_present(raw)))


def read_callback_by_ids(raw: bytes) -> CallbackByIds:
    """What somebody says who names the task and the run."""
    found = _BY_IDS.read(_present(raw))
    _telling(found)
    return found


def _present(raw: bytes) -> bytes:
    if not raw:
        raise InvalidJson('a body is required; send {"status": "SUCCESS"} or {"status": "FAILED"}')
    return raw


def _telling(body: CallbackInput) -> CallbackInput:
    if body.status is None and body.progress is None and not body.message and body.extend_sec is None:
        raise InvalidArgument.of("status", "is required: SUCCESS or FAILED; or send progress, message or extend_sec")
    return body


def word_of(body: CallbackInput) -> Word:
    """What a callback says, in the core's terms."""
    return Word(
        succeeded=None if body.status is None else body.status == "SUCCESS",
        error=body.error_message or "",
        progress=body.progress,
        message=body.message or "",
        extend=None if body.extend_sec is None else timedelta(seconds=body.extend_sec),
    )


def show_callback(record: CallbackRecord) -> CallbackView:
    return CallbackView(
        id=record.id,
        task_run_id=record.run_id,
        received_at=moment(record.received_at),
        status=record.status,
        note=record.note,
        headers=record.headers,
        body=record.body.decode(errors="replace"),
    )
