"""HTTP that goes nowhere: calls are written down and answered as a test says, in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from fnmatch import fnmatchcase
from typing import Any, Final

import msgspec

from ksana.domain.durations import parse_duration
from ksana.domain.errors import InvalidArgument
from ksana.domain.outcomes import AttemptContext, Outcome
from ksana.targets.http.answers import Answer
from ksana.targets.http.courier import Courier, NoAnswerError, NotCalledError
from ksana.targets.http.failures import Failure, lost, not_connected
from ksana.targets.http.heads import Headers
from ksana.targets.http.plans import Request
from ksana.targets.http.pool import Place
from ksana.targets.http.wire import BrokenError, LateError

_LEAST_STATUS: Final = 100
_MOST_STATUS: Final = 599


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """An answer: `json` or `body`, `after` a while."""

    status: int = 200
    body: str | bytes = b""
    json: Any = msgspec.UNSET
    headers: Mapping[str, str] = {}
    after: str | timedelta = timedelta(0)

    def answer(self, most: int) -> Answer:
        given = msgspec.json.encode(self.json) if self.json is not msgspec.UNSET else self.body
        body = given.encode() if isinstance(given, str) else given
        headers = {name.lower(): value for name, value in self.headers.items()}
        return Answer(self.status, headers, body[:most], len(body) > most)


class Refused(msgspec.Struct, frozen=True):
    """Nobody listens there."""


class Broken(msgspec.Struct, frozen=True):
    """The connection breaks before there is an answer."""


class Silent(msgspec.Struct, frozen=True):
    """No answer ever comes."""


Said = int | Reply | Refused | Broken | Silent


class HttpCall(msgspec.Struct, frozen=True):
    """A call as it would have gone out; header names as they were written."""

    method: str
    url: str
    headers: dict[str, str]
    body: bytes
    at: datetime
    run_id: int

    @property
    def json(self) -> Any:
        return msgspec.json.decode(self.body)


class Script:
    """Who answers what, and who was called. A call that nobody has an answer for fails, and says so."""

    def __init__(self) -> None:
        self.calls: list[HttpCall] = []
        self._answers: dict[tuple[str, str], list[Said]] = {}

    def reply(self, url: str, *answers: Said) -> None:
        """Answer calls to this address one after the other, the last for ever: a status, a Reply, or Refused(),
        Broken(), Silent(). The address may begin with a method and have `*` in it; the last one that fits counts."""
        for answer in answers:
            if isinstance(answer, int) and not _LEAST_STATUS <= answer <= _MOST_STATUS:
                raise InvalidArgument.of("reply", f"{answer} is no status")
        method, _, address = url.rpartition(" ")
        key = (method.strip().upper() or "*", address)
        self._answers.pop(key, None)
        self._answers[key] = list(answers) or [200]

    def calls_to(self, url: str) -> list[HttpCall]:
        """The calls to this address, which may have `*` in it."""
        return [call for call in self.calls if _fits(call.url, url)]

    def next_answer(self, method: str, url: str) -> Said | None:
        for (known, address), answers in reversed(self._answers.items()):
            if known in ("*", method) and _fits(url, address):
                return answers.pop(0) if len(answers) > 1 else answers[0]
        return None


class ScriptedCourier(Courier):
    """Knows all that a real one does but the way."""

    script: Script

    def begin(self, request: Request, context: AttemptContext, tell: Callable[[Outcome], None]) -> None:
        """No connection ever stands ready, so each call is awaited."""

    async def send(self, request: Request, headers: Headers, context: AttemptContext, deadline: float) -> Answer:
        to = request.to
        url = f"{to.scheme}://{to.host_header}{to.target}"
        call = HttpCall(request.method, url, dict(headers), request.body, self._now(), context.run_id)
        self.script.calls.append(call)
        said = self.script.next_answer(request.method, url)
        place = Place(to.scheme, to.host, to.port, to.host.strip("[]"))
        match said:
            case None:
                raise NotCalledError(f'this test does not say what {url} answers; ksana.http.reply("{url}", 200) does')
            case int():
                return Reply(status=said).answer(self._limits.max_response_bytes)
            case Refused():
                raise NoAnswerError(not_connected(ConnectionRefusedError(), place, context.connect_timeout))
            case Broken():
                raise NoAnswerError(lost(BrokenError("", None), place, context.timeout))
            case Silent():
                raise NoAnswerError(await self._too_late(deadline, place, context))
            case Reply():
                return await self._after_a_while(said, deadline, place, context)

    async def _after_a_while(self, reply: Reply, deadline: float, place: Place, context: AttemptContext) -> Answer:
        span = parse_duration(reply.after, "after") if isinstance(reply.after, str) else reply.after
        ready = asyncio.get_running_loop().time() + span.total_seconds()
        if ready > deadline:
            raise NoAnswerError(await self._too_late(deadline, place, context))
        await _until(ready)
        return reply.answer(self._limits.max_response_bytes)

    async def _too_late(self, deadline: float, place: Place, context: AttemptContext) -> Failure:
        await _until(deadline)
        return lost(LateError("", None), place, context.timeout)


async def _until(seconds: float) -> None:
    await asyncio.sleep(seconds - asyncio.get_running_loop().time())


def _fits(url: str, pattern: str) -> bool:
    # Whoever says nothing of the query means the address with any.
    return fnmatchcase(url, pattern) or ("?" not in pattern and fnmatchcase(url.partition("?")[0], pattern))
