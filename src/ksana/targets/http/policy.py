"""Which addresses HTTP calls may go to. Asked about the address really connected to, never a name alone."""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_network

import msgspec

from ksana.targets.http.addresses import Address, Place, place_of

_WORDS = {
    Place.PRIVATE: "a private address",
    Place.LOOPBACK: "a loopback address",
    Place.FORBIDDEN: "never a target (link-local, metadata service, multicast, unspecified or reserved)",
}


class TargetPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """Public addresses are always allowed, some never; loopback and private ones if the server says so.

    A server that others can reach must not let them reach its own host and network through it, so
    `allow_loopback` and `allow_private` are for servers bound to loopback. `networks` and `hosts` (exact, or
    `*.example.com`) are exceptions to that, not to what is never allowed.
    """

    allow_loopback: bool
    allow_private: bool
    networks: tuple[IPv4Network | IPv6Network, ...] = ()
    hosts: tuple[str, ...] = ()

    @classmethod
    def of(cls, *, allow_loopback: bool, allow_private: bool, allowed: Iterable[str] = ()) -> TargetPolicy:
        """From one list of networks, addresses and host names, as people write it."""
        networks: list[IPv4Network | IPv6Network] = []
        hosts: list[str] = []
        for entry in allowed:
            try:
                networks.append(ip_network(entry, strict=False))
            except ValueError:
                hosts.append(entry.lower().rstrip("."))
        return cls(
            allow_loopback=allow_loopback,
            allow_private=allow_private,
            networks=tuple(networks),
            hosts=tuple(hosts),
        )

    def refusal(self, host: str, address: Address) -> str | None:
        """Why this address, found for this host, may not be called; None if it may."""
        place = place_of(address)
        if place is Place.PUBLIC:
            return None
        if place is not Place.FORBIDDEN:
            by_place = self.allow_loopback if place is Place.LOOPBACK else self.allow_private
            if by_place or self._is_listed(host, address):
                return None
        is_name = host.strip("[]") != str(address)
        sentence = f"{host} is {address}, {_WORDS[place]}" if is_name else f"{host} is {_WORDS[place]}"
        if place is Place.FORBIDDEN:
            return f"{sentence}; change target.url"
        return (
            f"{sentence}, and a server reachable by others calls those only if told to; "
            f"add {host} or its network to executor.allow_net"
        )

    def _is_listed(self, host: str, address: Address) -> bool:
        name = host.rstrip(".")
        return any(
            name == entry or (entry.startswith("*.") and name.endswith(entry[1:])) for entry in self.hosts
        ) or any(
            address in network or ((inner := _unwrapped(address)) is not None and inner in network)
            for network in self.networks
        )


def _unwrapped(address: Address) -> Address | None:
    return address.ipv4_mapped if isinstance(address, IPv6Address) else None
