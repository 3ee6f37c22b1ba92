"""Where a MySQL or MariaDB database is and how to log in, read from a URL."""

from __future__ import annotations

import ssl
from typing import NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit


class Address(NamedTuple):
    """Where the database is and how to log in."""

    host: str
    port: int
    user: str
    password: str
    db: str
    unix_socket: str | None
    tls: str


def parse_url(url: str) -> Address:
    """Read `mysql://user:password@host:3306/db?unix_socket=…&tls=…`."""
    parts = urlsplit(url)
    options = {name: values[-1] for name, values in parse_qs(parts.query).items()}
    return Address(
        host=parts.hostname or "127.0.0.1",
        port=parts.port or 3306,
        user=unquote(parts.username or "root"),
        password=unquote(parts.password or ""),
        db=unquote(parts.path.lstrip("/")),
        unix_socket=options.get("unix_socket"),
        tls=options.get("tls", ""),
    )


def tls_context(choice: str) -> ssl.SSLContext | None:
    """What the URL's `tls` asks for: nothing, a checked certificate, or `skip-verify`."""
    if choice in ("", "false"):
        return None
    context = ssl.create_default_context()
    if choice == "skip-verify":
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context
