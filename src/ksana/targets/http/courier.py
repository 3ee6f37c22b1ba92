"""Sends a request to an allowed address, follows its redirects, and says in time what came of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime

from ksana.domain.outcomes import AttemptContext, Exchange, Outcome, Verdict
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
from ksana.targets.http.wire import Connection, LostError


class NotCalledError(Exception):
    """Nothing was sent, and trying again would change nothing."""


class NoAnswerError(Exception):
    """The request brought no answer; another try may."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.sentence)
        self.failure = failure


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
        loop = asyncio.get_running_loop()
        deadline = loop.time() + context.timeout.total_seconds()
        origin = ""
        for _ in range(self._limits.max_redirects + 1):
            headers = self._signed(request, context)
            try:
                answer = await self.send(request, headers, context, deadline)
            except NotCalledError as error:
                return Outcome(
                    Verdict.FAIL, f"{origin}not called: {error}", exchange=self._exchanged(request, headers, None)
                )
            except NoAnswerError as error:
                return Outcome(
                    Verdict.RETRY,
                    origin + error.failure.sentence,
                    timed_out=error.failure.timed_out,
                    code=None if error.failure.partial is None else error.failure.partial.status,
                    exchange=self._exchanged(request, headers, error.failure.partial),
                )
            if answer.status not in REDIRECTS:
                return self._outcome(request, headers, answer, origin)
            location = answer.headers.get("location")
            if not location:
                return self._failed(request, headers, answer, "without a Location to go to")
            try:
                following = next_request(request, answer.status, location, self._secrets)
            except ValueError as error:
                return self._failed(request, headers, answer, f"to {location[:200]!r}, which {error}")
            origin = origin or f"redirected from {request.line}: "
            request = following
        most = self._limits.max_redirects
        return self._failed(
            request,
            headers,
            answer,
            f"after {most} redirects already; set target.url to where they should end",
        )

    async def send(self, request: Request, headers: Headers, context: AttemptContext, deadline: float) -> Answer:
        """One request and its answer. NotCalledError or NoAnswerError if there is none."""
        try:
            if request.head and headers is request.headers:
                head = request.head
            else:
                head = head_of(request.method, request.to, headers, request.body, request.has_host)
        except ValueError as error:
            raise NotCalledError(str(error)) from None
        loop = asyncio.get_running_loop()
        route = self._routes.known(request.to, loop.time())
        if route is None:
            route = await self._route(request, context, deadline)
        to = request.to
        place = Place(to.scheme, to.host, to.port, route.addresses[0])
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

    def _outcome(self, request: Request, headers: Headers, answer: Answer, origin: str) -> Outcome:
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
