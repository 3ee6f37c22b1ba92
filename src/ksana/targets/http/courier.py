"""Sends a request to an allowed address, follows its redirects, and says in time what came of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime
from typing import NamedTuple

from ksana.domain.outcomes import AttemptContext, Exchange, Outcome, Verdict
from ksana.domain.ports import Begun
from ksana.targets.http.answers import Answer, retry_after, sentence, status_line, verdict_of
from ksana.targets.http.failures import Failure, lost, not_connected, spoken
from ksana.targets.http.heads import Headers, head_of
from ksana.targets.http.limits import Limits
from ksana.targets.http.plans import Request
from ksana.targets.http.pool import Place, Pool
from ksana.targets.http.redaction import Secrets
from ksana.targets.http.redirects import REDIRECTS, next_request
from ksana.targets.http.routes import RefusedError, Route, Routes, UnresolvedError
from ksana.targets.http.signing import signature_headers
from ksana.targets.http.wire import Connection, LostError, UnsentError


class NotCalledError(Exception):
    """Nothing was sent, and trying again would change nothing."""


class NoAnswerError(Exception):
    """The request brought no answer; another try may."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.sentence)
        self.failure = failure


class Leg(NamedTuple):
    """A request of an attempt: the first, or one that a redirect led to, of which `origin` tells."""

    request: Request
    origin: str = ""
    number: int = 0


class Courier:
    """One for all attempts. An attempt's time covers names, connections, redirects and bodies together."""

    def __init__(
        self,
        routes: Routes,
        pool: Pool,
        limits: Limits,
        secrets: Secrets,
        signing_secret: bytes | None,
        now: Callable[[], datetime],
    ) -> None:
        self._routes = routes
        self._pool = pool
        self._limits = limits
        self._secrets = secrets
        self._signing_secret = signing_secret
        self._now = now

    async def deliver(self, request: Request, context: AttemptContext) -> Outcome:
        """Send the request and whatever its redirects ask for."""
        deadline = asyncio.get_running_loop().time() + context.timeout.total_seconds()
        return await self.go_on(Leg(request), context, deadline)

    def begin(self, request: Request, context: AttemptContext, tell: Callable[[Outcome], None]) -> Begun | None:
        """The same without waiting, if a connection stands ready; None if there is none, and then nothing was sent."""
        if (loop := self._pool.loop) is None:
            return None
        now = loop.time()
        route = self._routes.known(request.to, now)
        if route is None:
            return None
        headers = self._signed(request, context)
        try:
            head = _head(request, headers)
        except ValueError:
            return None
        place = _place(request, route)
        connection = self._pool.idle(place)
        if connection is None:
            return None
        deadline = now + context.timeout.total_seconds()
        errand = _Errand(self, request, headers, context, deadline, place, connection, tell)
        most = self._limits.max_response_bytes
        connection.ask(head + request.body, request.method == "HEAD", most, deadline, errand.answered)
        return errand

    async def go_on(self, leg: Leg, context: AttemptContext, deadline: float) -> Outcome:
        """Send what is still to be sent."""
        while True:
            headers = self._signed(leg.request, context)
            try:
                answer = await self.send(leg.request, headers, context, deadline)
            except NotCalledError as error:
                exchange = self._exchanged(leg.request, headers, None)
                return Outcome(Verdict.FAIL, f"{leg.origin}not called: {error}", exchange=exchange)
            except NoAnswerError as error:
                return self.unanswered(leg, headers, error.failure)
            following = self.judged(leg, headers, answer)
            if isinstance(following, Outcome):
                return following
            leg = following

    def judged(self, leg: Leg, headers: Headers, answer: Answer) -> Outcome | Leg:
        """What comes of an answer, which may be to go on elsewhere."""
        request = leg.request
        if answer.status not in REDIRECTS:
            return self.outcome(request, headers, answer, leg.origin)
        location = answer.headers.get("location")
        if not location:
            return self._failed(request, headers, answer, "without a Location to go to")
        try:
            following = next_request(request, answer.status, location, self._secrets)
        except ValueError as error:
            return self._failed(request, headers, answer, f"to {location[:200]!r}, which {error}")
        most = self._limits.max_redirects
        if leg.number >= most:
            why = f"after {most} redirects already; set target.url to where they should end"
            return self._failed(request, headers, answer, why)
        return Leg(following, leg.origin or f"redirected from {request.line}: ", leg.number + 1)

    def unanswered(self, leg: Leg, headers: Headers, failure: Failure) -> Outcome:
        """What comes of a request that brought no answer."""
        return Outcome(
            Verdict.RETRY,
            leg.origin + failure.sentence,
            timed_out=failure.timed_out,
            code=None if failure.partial is None else failure.partial.status,
            exchange=self._exchanged(leg.request, headers, failure.partial),
        )

    def give_back(self, place: Place, connection: Connection) -> None:
        """Have the connection serve others."""
        self._pool.give_back(place, connection)

    async def send(self, request: Request, headers: Headers, context: AttemptContext, deadline: float) -> Answer:
        """One request and its answer. NotCalledError or NoAnswerError if there is none."""
        try:
            head = _head(request, headers)
        except ValueError as error:
            raise NotCalledError(str(error)) from None
        loop = asyncio.get_running_loop()
        route = self._routes.known(request.to, loop.time())
        if route is None:
            route = await self._route(request, context, deadline)
        while True:
            place = _place(request, route)
            connection = self._pool.idle(place)
            if connection is None:
                place, connection = await self._connect(request, route, context, deadline)
            try:
                return await connection.exchange(
                    head + request.body,
                    is_head=request.method == "HEAD",
                    most=self._limits.max_response_bytes,
                    deadline=deadline,
                )
            except UnsentError:
                continue
            except LostError as error:
                raise NoAnswerError(lost(error, place, context.timeout)) from None
            finally:
                self._pool.give_back(place, connection)

    async def _connect(
        self, request: Request, route: Route, context: AttemptContext, deadline: float
    ) -> tuple[Place, Connection]:
        to = request.to
        loop = asyncio.get_running_loop()
        failure = Failure(f"no answer within {spoken(context.timeout)}", timed_out=True)
        for address in route.addresses:
            place = Place(to.scheme, to.host, to.port, address)
            until = min(deadline, loop.time() + context.connect_timeout.total_seconds())
            try:
                async with asyncio.timeout_at(until):
                    connection = await self._pool.connect(place)
            except OSError as error:
                failure = not_connected(error, place, min(context.timeout, context.connect_timeout))
            else:
                route.prefer(address)
                return place, connection
        raise NoAnswerError(failure)

    async def _route(self, request: Request, context: AttemptContext, deadline: float) -> Route:
        left = deadline - asyncio.get_running_loop().time()
        try:
            return await self._routes.find(request.to, min(left, context.connect_timeout.total_seconds()))
        except RefusedError as error:
            raise NotCalledError(str(error)) from None
        except UnresolvedError as error:
            raise NoAnswerError(Failure(str(error), timed_out=error.timed_out)) from None

    def _signed(self, request: Request, context: AttemptContext) -> Headers:
        if self._signing_secret is None or not request.is_signed:
            return request.headers
        run_id = str(context.run_id)
        signature = signature_headers(self._signing_secret, run_id, self._now(), request.body)
        return request.headers | signature

    def outcome(self, request: Request, headers: Headers, answer: Answer, origin: str = "") -> Outcome:
        """What comes of an answer that is no redirect."""
        exchange = self._exchanged(request, headers, answer)
        verdict = verdict_of(answer.status, request.is_async)
        if verdict is Verdict.SUCCESS:
            result = None if answer.truncated else answer.body
            return Outcome(verdict, code=answer.status, result=result, exchange=exchange)
        if verdict is Verdict.WAIT:
            return Outcome(verdict, code=answer.status, exchange=exchange)
        return Outcome(
            verdict,
            origin + sentence(answer, request.line),
            retry_after=retry_after(answer.headers, self._now()) if verdict is Verdict.RETRY else None,
            code=answer.status,
            exchange=exchange,
        )

    def _failed(self, request: Request, headers: Headers, answer: Answer, why: str) -> Outcome:
        return Outcome(
            Verdict.FAIL,
            f"{status_line(answer.status)} from {request.line} {why}",
            code=answer.status,
            exchange=self._exchanged(request, headers, answer),
        )

    def _exchanged(self, request: Request, headers: Headers, answer: Answer | None) -> Exchange:
        shown = self._secrets.masked(headers) if request.has_secrets else headers
        if answer is None:
            return Exchange(request.line, shown, request.body)
        return Exchange(
            request.line,
            shown,
            request.body,
            answer.status,
            self._secrets.masked_answer(answer.headers),
            answer.body,
            answer.truncated,
        )


class _Errand:
    """A request on its way that nobody waits for: its outcome is told. Where it is sent on, the rest is awaited."""

    __slots__ = (
        "_connection",
        "_context",
        "_courier",
        "_deadline",
        "_headers",
        "_place",
        "_request",
        "_rest",
        "_tell",
    )

    def __init__(
        self,
        courier: Courier,
        request: Request,
        headers: Headers,
        context: AttemptContext,
        deadline: float,
        place: Place,
        connection: Connection,
        tell: Callable[[Outcome], None],
    ) -> None:
        self._courier = courier
        self._request = request
        self._headers = headers
        self._context = context
        self._deadline = deadline
        self._place = place
        self._connection: Connection | None = connection
        self._tell = tell
        self._rest: asyncio.Task[Outcome] | None = None

    def answered(self, said: Answer | LostError) -> None:
        """The first answer is there, or will not come."""
        self._let_go()
        courier, request, headers = self._courier, self._request, self._headers
        if isinstance(said, UnsentError):
            self._follow(Leg(request))
        elif isinstance(said, LostError):
            self._tell(courier.unanswered(Leg(request), headers, lost(said, self._place, self._context.timeout)))
        elif said.status not in REDIRECTS:
            self._tell(courier.outcome(request, headers, said))
        else:
            self._follow(courier.judged(Leg(request), headers, said))

    def _follow(self, following: Outcome | Leg) -> None:
        if isinstance(following, Outcome):
            self._tell(following)
            return
        self._rest = asyncio.create_task(self._courier.go_on(following, self._context, self._deadline))
        self._rest.add_done_callback(self._arrived)

    def give_up(self) -> None:
        """Close the connection at once; nothing is told any more."""
        if self._connection is not None:
            self._connection.leave()
            self._let_go()
        if self._rest is not None:
            self._rest.cancel()

    def _let_go(self) -> None:
        connection, self._connection = self._connection, None
        assert connection is not None
        self._courier.give_back(self._place, connection)

    def _arrived(self, rest: asyncio.Task[Outcome]) -> None:
        if not rest.cancelled():
            self._tell(rest.result())


def _place(request: Request, route: Route) -> Place:
    to = request.to
    return Place(to.scheme, to.host, to.port, route.addresses[0])


def _head(request: Request, headers: Headers) -> bytes:
    """How the request begins on the wire; ValueError if a value would end its line early."""
    if request.head and headers is request.headers:
        return request.head
    return head_of(request.method, request.to, headers, request.body, request.has_host)
