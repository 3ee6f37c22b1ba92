"""What kind of place an IP address is. One that carries an IPv4 address is as dangerous as what it carries.

Written as tables of our own, because `ipaddress.is_global` is true for NAT64, 6to4 and `::127.0.0.1`, all of
which can lead to the very host that asks.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

Address = IPv4Address | IPv6Address


class Place(IntEnum):
    """In rising order of caution: of two that apply, the higher one counts."""

    PUBLIC = 0
    PRIVATE = 1
    LOOPBACK = 2
    FORBIDDEN = 3


_V4: tuple[tuple[IPv4Network, Place], ...] = tuple(
    (IPv4Network(network), place)
    for network, place in (
        ("0.0.0.0/8", Place.FORBIDDEN),  # "this host": Linux connects it to loopback
        ("169.254.0.0/16", Place.FORBIDDEN),  # link-local, with the metadata services of most clouds
        ("100.100.100.200/32", Place.FORBIDDEN),  # metadata, Alibaba
        ("168.63.129.16/32", Place.FORBIDDEN),  # metadata, Azure
        ("192.0.0.0/24", Place.FORBIDDEN),  # protocol assignments, with Oracle's metadata
        ("224.0.0.0/3", Place.FORBIDDEN),  # multicast, reserved, broadcast
        ("127.0.0.0/8", Place.LOOPBACK),
        ("10.0.0.0/8", Place.PRIVATE),
        ("100.64.0.0/10", Place.PRIVATE),
        ("172.16.0.0/12", Place.PRIVATE),
        ("192.0.2.0/24", Place.PRIVATE),
        ("192.88.99.0/24", Place.PRIVATE),
        ("192.168.0.0/16", Place.PRIVATE),
        ("198.18.0.0/15", Place.PRIVATE),
        ("198.51.100.0/24", Place.PRIVATE),
        ("203.0.113.0/24", Place.PRIVATE),
    )
)

_V6: tuple[tuple[IPv6Network, Place], ...] = tuple(
    (IPv6Network(network), place)
    for network, place in (
        ("::1/128", Place.LOOPBACK),
        ("fd00:ec2::254/128", Place.FORBIDDEN),  # metadata, Amazon
        ("fd20:ce::254/128", Place.FORBIDDEN),  # metadata, Google
        ("fc00::/7", Place.PRIVATE),
        ("fec0::/10", Place.PRIVATE),
        ("64:ff9b:1::/48", Place.PRIVATE),
        ("2001:db8::/32", Place.PRIVATE),
        ("3fff::/20", Place.PRIVATE),
    )
)

_NAT64 = IPv6Network("64:ff9b::/96")
_NAT64_LOCAL = IPv6Network("64:ff9b:1::/48")
_MAPPED = IPv6Network("::ffff:0:0/96")
_TRANSLATED = IPv6Network("::ffff:0:0:0/96")
_COMPATIBLE = IPv6Network("::/96")
_SIX_TO_FOUR = IPv6Network("2002::/16")
_TEREDO = IPv6Network("2001::/32")
_GLOBAL = IPv6Network("2000::/3")
_LOW_32 = 0xFFFFFFFF
_ISATAP = (0x00005EFE, 0x02005EFE)


@lru_cache(maxsize=4096)
def place_of(address: Address) -> Place:
    """Where connecting to this address leads, at worst."""
    if isinstance(address, IPv4Address):
        return _v4_place(address)
    carried = [_v4_place(inner) for inner in _carried(address)]
    for network, place in _V6:
        if address in network:
            return max(place, *carried) if carried else place
    if carried:
        return max(carried)
    # Only 2000::/3 has been given out; the rest is unspecified, link-local, multicast or not yet anything.
    return Place.PUBLIC if address in _GLOBAL else Place.FORBIDDEN


def _v4_place(address: IPv4Address) -> Place:
    return next((place for network, place in _V4 if address in network), Place.PUBLIC)


def _carried(address: IPv6Address) -> Iterator[IPv4Address]:
    number = int(address)
    if number <= 1:
        return
    if any(address in network for network in (_MAPPED, _TRANSLATED, _COMPATIBLE, _NAT64, _NAT64_LOCAL)):
        yield IPv4Address(number & _LOW_32)
    elif address in _SIX_TO_FOUR:
        yield IPv4Address(number >> 80 & _LOW_32)
    elif address in _TEREDO:
        yield IPv4Address(number >> 64 & _LOW_32)
        yield IPv4Address(~number & _LOW_32)
    if number >> 32 & _LOW_32 in _ISATAP:
        yield IPv4Address(number & _LOW_32)
