"""Keeps foreign web pages out: a page someone visits can reach loopback, but must not read or change a thing.

Reading is closed by checking Host while no key protects the API (DNS rebinding), writing by checking Origin.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final
from urllib.parse import urlsplit

from ksana.api.kit.errors import Forbidden, MisdirectedRequest

_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "[::1]"})
_FORWARDED: Final = frozenset({b"forwarded", b"x-forwarded-for", b"x-real-ip"})
_SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})


class BrowserGuard:
    """`hosts` are further names of this server, `*` for any; `origins` are pages elsewhere that may write."""

    def __init__(self, hosts: Collection[str] = (), origins: Collection[str] = ()) -> None:
        self._any_host = "*" in hosts
        self._hosts = _LOOPBACK | {host.lower() for host in hosts}
        self._origins = {origin.rstrip("/").lower() for origin in origins}

    def check_host(self, headers: Mapping[bytes, bytes]) -> None:
        """Refuse a request that was sent to another name than ours, or to a loopback name by somebody elsewhere."""
        if self._any_host:
            return
        host = headers.get(b"host", b"").decode("latin-1").lower()
        name = _without_port(host)
        if name in _LOOPBACK and not _FORWARDED.isdisjoint(headers):
            raise Forbidden("this came through a proxy, so others may reach it: make a key with `ksana key create`")
        if name not in self._hosts:
            raise MisdirectedRequest(
                "without an API key only loopback names are served; make a key, or allow this host by name"
            )

    def check_origin(self, method: str, headers: Mapping[bytes, bytes]) -> None:
        """Refuse a write that a page of another origin makes its visitor's browser send."""
        if method in _SAFE:
            return
        raw = headers.get(b"origin")
        if raw is None:
            if headers.get(b"sec-fetch-site", b"none") not in (b"none", b"same-origin"):
                raise Forbidden("a page of another origin may not do this")
            return
        origin = raw.decode("latin-1").lower()
        # Schemes are not compared: behind a proxy that ends TLS we see http where the page saw https.
        if origin not in self._origins and _authority(origin) != headers.get(b"host", b"").decode("latin-1").lower():
            raise Forbidden(f"pages of {origin[:100]} may not do this; allow that origin if it is yours")


def _without_port(host: str) -> str:
    if host.startswith("["):
        address, bracket, _ = host.partition("]")
        return address + bracket
    return host.partition(":")[0]


def _authority(origin: str) -> str | None:
    try:
        return urlsplit(origin).netloc or None
    except ValueError:
        return None
