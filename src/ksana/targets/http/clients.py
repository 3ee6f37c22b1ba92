"""Clients with their connection pools: one per host and pinned address, one for all literal addresses."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from datetime import timedelta
from typing import NamedTuple

from pyreqwest.client import Client, ClientBuilder

from ksana.targets.http.addresses import Address
from ksana.targets.http.destinations import Destination
from ksana.targets.http.flights import Flights
from ksana.targets.http.limits import Limits


class Pin(NamedTuple):
    """What a client is bound to; host and address are empty where the URL itself names the address."""

    host: str
    address: str
    connect_timeout: timedelta


class Clients:
    """The clients used last. One that falls out closes its idle connections; calls under way go on."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._kept: OrderedDict[Pin, Client] = OrderedDict()
        self._flights: Flights[Pin, Client] = Flights()

    async def client(self, to: Destination, address: Address, connect_timeout: timedelta) -> Client:
        """A client that can reach this destination at this address and nowhere else."""
        is_literal = to.literal is not None
        pin = Pin("", "", connect_timeout) if is_literal else Pin(to.host, str(address), connect_timeout)
        client = self._kept.get(pin)
        if client is None:
            return await self._flights.join(pin, lambda: self._add(pin))
        self._kept.move_to_end(pin)
        return client

    async def close(self) -> None:
        """Close every connection; calls under way end with an error."""
        await self._flights.close()
        kept = list(self._kept.values())
        self._kept.clear()
        for client in kept:
            await client.close()

    async def _add(self, pin: Pin) -> Client:
        # Reading the system's root certificates takes milliseconds, which the loop must not stand still for.
        client = await asyncio.to_thread(self._built, pin)
        self._kept[pin] = client
        if len(self._kept) > self._limits.max_clients:
            self._kept.popitem(last=False)
        return client

    def _built(self, pin: Pin) -> Client:
        builder = (
            ClientBuilder()
            .no_proxy()
            .follow_redirects(False)
            .referer(False)
            .default_cookie_store(False)
            .gzip(False)
            .brotli(False)
            .zstd(False)
            .deflate(False)
            .connect_timeout(pin.connect_timeout)
            .pool_idle_timeout(self._limits.idle_timeout)
            .pool_max_idle_per_host(self._limits.idle_per_host)
        )
        if pin.host:
            # Port 0 leaves the port to the URL.
            builder = builder.resolve(pin.host, pin.address, 0)
        return builder.build()
