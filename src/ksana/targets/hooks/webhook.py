"""Webhooks: an alert as a POST of its JSON body, signed like every call of this server, by the same target policy."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

from ksana import __version__
from ksana.domain.alerts import Alert
from ksana.domain.errors import InvalidArgument
from ksana.domain.outcomes import AttemptContext, Verdict
from ksana.targets.http.courier import Courier
from ksana.targets.http.destinations import Destination, destination_of
from ksana.targets.http.limits import Limits
from ksana.targets.http.plans import Request, line_of
from ksana.targets.http.policy import TargetPolicy
from ksana.targets.http.pool import Pool
from ksana.targets.http.redaction import Secrets
from ksana.targets.http.redirects import REDIRECTS
from ksana.targets.http.routes import RefusedError, Routes, UnresolvedError, system_lookup
from ksana.targets.http.signing import signature_headers

TIMEOUT = timedelta(seconds=10)
# A redirect would turn the POST into a GET without its body, which delivers nothing.
_LIMITS = Limits(max_response_bytes=64 * 1024, max_redirects=0)
_HEADERS = {
    "User-Agent": f"ksana/{__version__}",
    "Accept": "*/*",
    "Accept-Encoding": "identity",
    "Content-Type": "application/json",
}


class Webhooks:
    """What all webhooks of a process share: connections, and who may be called."""

    def __init__(self, policy: TargetPolicy, now: Callable[[], datetime], signing_secret: bytes | None) -> None:
        self._routes = Routes(policy, system_lookup, _LIMITS.max_names, _LIMITS.name_ttl)
        self._pool = Pool(_LIMITS)
        # Signed here: the id of the message is the alert's, so that a receiver can tell a repeat.
        self._courier = Courier(self._routes, self._pool, _LIMITS, Secrets(), None, now)
        self._now = now
        self._signing_secret = signing_secret

    def hook(self, name: str, url: str) -> Webhook:
        """The hook for one address."""
        try:
            return Webhook(self, name, destination_of(url))
        except ValueError as error:
            raise InvalidArgument.of("alerts.urls", f"{name} {error}") from None

    async def check_host(self, host: str) -> str:
        """Why this host may not be called; nothing if it may."""
        try:
            to = destination_of(f"http://{f'[{host}]' if ':' in host else host}/")
            await self._routes.find(to, TIMEOUT.total_seconds())
        except (RefusedError, UnresolvedError, ValueError) as error:
            return str(error)
        return ""

    async def post(self, name: str, to: Destination, alert: Alert) -> str:
        """Send the alert; nothing when it was taken, else why not, without the address: its path may be a secret."""
        headers = dict(_HEADERS)
        if to.authorization:
            headers["Authorization"] = to.authorization
        if self._signing_secret is not None:
            headers |= signature_headers(self._signing_secret, alert.id, self._now(), alert.body)
        request = Request("POST", to, headers, alert.body, False, True, False, False, line_of("POST", to))
        outcome = await self._courier.deliver(request, _context(alert))
        if outcome.code in REDIRECTS:
            return f"{outcome.code} from {name}: give the address it leads to, redirects are not followed"
        return "" if outcome.verdict is Verdict.SUCCESS else outcome.error.replace(to.shown, name)

    async def close(self) -> None:
        await self._routes.close()
        await self._pool.close()


class Webhook:
    """One address that is told of failures."""

    def __init__(self, shared: Webhooks, name: str, to: Destination) -> None:
        self.name = name
        self._shared = shared
        self._to = to

    async def deliver(self, alert: Alert) -> str:
        return await self._shared.post(self.name, self._to, alert)

    async def close(self) -> None:
        await self._shared.close()


def _context(alert: Alert) -> AttemptContext:
    """All a delivery needs to know is how long it may take."""
    return AttemptContext(
        run_id=alert.run_id,
        job_id=None,
        job_ref="",
        job_name="",
        planned_at=alert.created_at,
        triggered_at=alert.created_at,
        attempt=alert.attempts,
        fence=alert.epoch,
        trace_id="",
        timeout=TIMEOUT,
        connect_timeout=TIMEOUT,
    )
