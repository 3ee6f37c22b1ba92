"""From a host to addresses that may be called. A client is pinned to what was checked here, so a name that
changes between the check and the call gains nothing."""

from __future__ import annotations

import asyncio
import socket
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from ipaddress import ip_address

from ksana.targets.http.addresses import Address
from ksana.targets.http.destinations import Destination
from ksana.targets.http.flights import Flights
from ksana.targets.http.policy import TargetPolicy

Lookup = Callable[[str], Awaitable[Sequence[str]]]


class RefusedError(Exception):
    """The policy allows none of the host's addresses."""


class UnresolvedError(Exception):
    """The name has no address, or the resolver did not say in time."""

    def __init__(self, message: str, timed_out: bool = False) -> None:
        super().__init__(message)
        self.timed_out = timed_out


class Route:
    """The allowed addresses of a host, the one that answered last first."""

    __slots__ = ("addresses", "expires_at")

    def __init__(self, addresses: tuple[str, ...], expires_at: float) -> None:
        self.addresses = addresses
        self.expires_at = expires_at

    def prefer(self, address: str) -> None:
        """Begin with this one from now on."""
        if address == self.addresses[0]:
            return
        self.addresses = (address, *(other for other in self.addresses if other != address))


class Routes:
    """Routes found so far. Names are looked up again after a short while, literal addresses never."""

    def __init__(self, policy: TargetPolicy, lookup: Lookup, size: int, ttl: timedelta) -> None:
        self._policy = policy
        self._lookup = lookup
        self._size = size
        self._ttl = ttl.total_seconds()
        self._known: OrderedDict[str, Route] = OrderedDict()
        self._flights: Flights[str, Route] = Flights()

    def known(self, to: Destination, now: float) -> Route | None:
        """The route if it is fresh, without waiting."""
        route = self._known.get(to.host)
        if route is None or route.expires_at <= now:
            return None
        self._known.move_to_end(to.host)
        return route

    async def find(self, to: Destination, timeout: float) -> Route:
        """The route, looked up if need be. RefusedError or UnresolvedError if there is none."""
        if to.literal is not None:
            return self._checked(to.host, [to.literal], float("inf"))
        try:
            async with asyncio.timeout(timeout):
                return await self._flights.join(to.host, lambda: self._find(to.host))
        except TimeoutError:
            raise UnresolvedError(f"name {to.host} was not resolved within {timeout:g}s", True) from None

    async def close(self) -> None:
        await self._flights.close()
        self._known.clear()

    async def _find(self, host: str) -> Route:
        try:
            found = [ip_address(text) for text in await self._lookup(host)]
        except (OSError, UnicodeError) as error:
            raise UnresolvedError(f"name {host} does not resolve: {_reason(error)}") from None
        if not found:
            raise UnresolvedError(f"name {host} does not resolve: it has no address")
        return self._checked(host, found, asyncio.get_running_loop().time() + self._ttl)

    def _checked(self, host: str, found: Sequence[Address], expires_at: float) -> Route:
        refusals = [self._policy.refusal(host, address) for address in found]
        allowed = [str(address) for address, refusal in zip(found, refusals, strict=True) if refusal is None]
        if not allowed:
            raise RefusedError(refusals[0])
        before = self._known.get(host)
        route = Route(tuple(allowed), expires_at)
        if before is not None and before.addresses[0] in allowed:
            route.prefer(before.addresses[0])
        self._known[host] = route
        if len(self._known) > self._size:
            self._known.popitem(last=False)
        return route


async def system_lookup(host: str) -> list[str]:
    """The addresses of a name, as the operating system has them."""
    found = await asyncio.get_running_loop().getaddrinfo(host, None, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


def _reason(error: OSError | UnicodeError) -> str:
    return (error.strerror or str(error)) if isinstance(error, OSError) else "it is not a valid host name"
