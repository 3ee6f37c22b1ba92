"""How calls are made, apart from who waits for the answers: repeated while that is safe and of use, read, or refused.

A talk yields what is to be sent and how long to pause, and is told what came of it. So there is one set of rules for
programs that block and for programs that await.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from random import SystemRandom
from typing import Any, Final, TypeAlias, TypeVar

import msgspec

from ksana.client.calls import Call, Conversation, Pause, Repeat
from ksana.client.errors import ApiError, Conflict, Invalid, NotAllowed, NotFound, Unavailable, Unreachable
from ksana.domain.errors import Problem

T = TypeVar("T")

_PASSING: Final = frozenset({429, 502, 503, 504})
# The server itself says that nothing was done; a gateway that got no answer cannot know.
_NOT_DONE: Final = frozenset({429, 503})
_IN_FLIGHT: Final = "IDEMPOTENCY_IN_FLIGHT"
_LONGEST_PAUSE: Final = 5.0
_EXCERPT: Final = 200

_random = SystemRandom()


class Request(msgspec.Struct, frozen=True):
    """What is sent. One that must not be sent twice wants a connection that nobody has used."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes | None
    is_fresh: bool
    held_back: float

    def __repr__(self) -> str:
        # The key must not reach a log through a traceback.
        return f"{self.method} {self.target}"


class Answer(msgspec.Struct, frozen=True):
    """What came back; header names are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Lost(Exception):
    """No whole answer came."""

    def __init__(self, message: str, *, was_sent: bool) -> None:
        super().__init__(message)
        self.was_sent = was_sent


class Manners(msgspec.Struct, frozen=True, kw_only=True):
    """What goes along with every request, and how it is repeated; in seconds."""

    headers: Mapping[str, str]
    retries: int = 5
    first_pause: float = 0.2
    patience: float = 30.0
    """A server that asks to be left alone for longer is not waited for."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}(…)"

    def pause(self, repeats: int) -> float:
        """Longer each time, and never the same for all clients of a server that comes back."""
        longest = min(self.first_pause * 2**repeats, _LONGEST_PAUSE)
        return _random.uniform(longest / 2, longest)


Talk: TypeAlias = Generator[Request | Pause, Any, T]


def made(described: Call[T] | Conversation[T], manners: Manners) -> Talk[T]:
    """All that a description asks for."""
    if isinstance(described, Call):
        return asked(described, manners)
    return _held(described, manners)


def _held(conversation: Conversation[T], manners: Manners) -> Talk[T]:
    try:
        step = next(conversation)
        while True:
            try:
                heard = (yield step) if isinstance(step, Pause) else (yield from asked(step, manners))
            except Exception as error:
                step = conversation.throw(error)
            else:
                step = conversation.send(heard)
    except StopIteration as end:
        result: T = end.value
        return result


def asked(call: Call[T], manners: Manners) -> Talk[T]:
    """One call, until it is answered."""
    may_repeat = call.repeat is Repeat.ALWAYS
    request = Request(
        call.method,
        call.target,
        {**manners.headers, **call.headers},
        call.body,
        is_fresh=not may_repeat,
        held_back=call.held_back,
    )
    repeats = 0
    while True:
        pause = manners.pause(repeats)
        try:
            answer: Answer = yield request
        except Lost as lost:
            if repeats >= manners.retries or (lost.was_sent and not may_repeat):
                raise Unreachable(str(lost), maybe_done=lost.was_sent) from None
        else:
            if 200 <= answer.status < 300:
                return _read(call, answer)
            error = error_of(answer)
            if repeats and call.is_done_when_gone and isinstance(error, NotFound):
                return call.decode(b"")
            if repeats >= manners.retries or not _is_passing(error, may_repeat):
                raise error
            if error.retry_after is not None:
                if error.retry_after > manners.patience:
                    raise error
                pause = max(pause, error.retry_after)
        yield Pause(pause)
        repeats += 1


def _is_passing(error: ApiError, may_repeat: bool) -> bool:
    return error.status in (_PASSING if may_repeat else _NOT_DONE) or error.code == _IN_FLIGHT


def _read(call: Call[T], answer: Answer) -> T:
    try:
        return call.decode(answer.body)
    except msgspec.MsgspecError as error:
        raise Unreachable(
            f"{call.method} {call.path} was answered with what this client cannot read: {error}", maybe_done=True
        ) from error


class _Field(msgspec.Struct):
    field: str = ""
    message: str = ""


class _ErrorBody(msgspec.Struct):
    code: str = ""
    message: str = ""
    request_id: str = ""
    problems: list[_Field] = []


def error_of(answer: Answer) -> ApiError:
    """The answer as an exception; one that is none of ours (a proxy's page) says what it can."""
    try:
        body = msgspec.json.decode(answer.body, type=_ErrorBody)
    except msgspec.MsgspecError:
        words = " ".join(answer.body[: 4 * _EXCERPT].decode("utf-8", "replace").split())
        body = _ErrorBody(message=words[:_EXCERPT])
    return _class_of(answer.status)(
        body.message or f"the server answered {answer.status}",
        status=answer.status,
        code=body.code or f"HTTP_{answer.status}",
        problems=[Problem(one.field, one.message) for one in body.problems],
        request_id=body.request_id or answer.headers.get("x-request-id", ""),
        retry_after=_retry_after(answer.headers.get("retry-after", "")),
    )


def _class_of(status: int) -> type[ApiError]:
    match status:
        case 401 | 403:
            return NotAllowed
        case 404:
            return NotFound
        case 409 | 412:
            return Conflict
        case 429:
            return Unavailable
        case _ if 400 <= status < 500:
            return Invalid
        case _ if status >= 500:
            return Unavailable
        case _:
            return ApiError


def _retry_after(text: str) -> float | None:
    text = text.strip()
    if text.isascii() and text.isdigit():
        return float(text[:9])
    try:
        at = parsedate_to_datetime(text)
    except (ValueError, TypeError):
        return None
    aware = at if at.tzinfo is not None else at.replace(tzinfo=UTC)
    return max(0.0, (aware - datetime.now(UTC)).total_seconds())
