"""Who can reach the server: beyond loopback it never starts without a key unless told to."""

from __future__ import annotations

from ipaddress import ip_address

from ksana.config.model import Settings
from ksana.domain.errors import InvalidArgument


def is_loopback(host: str) -> bool:
    """Does listening there keep the server to this machine?"""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host.lower().rstrip(".") == "localhost"


def check_exposure(settings: Settings, stored_keys: bool) -> None:
    """Refuse to listen beyond loopback while nobody needs a key. `stored_keys`: does the store hold any?"""
    if is_loopback(settings.server.host) or settings.auth.keys or stored_keys or settings.server.insecure:
        return
    raise InvalidArgument.of(
        "server.host",
        f"listening on {settings.server.host} would let anyone who reaches it run jobs. Make a key with "
        "`ksana key create` or set KSANA_API_KEYS; or listen on 127.0.0.1; or go on without with --insecure",
    )
