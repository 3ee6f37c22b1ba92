"""Where a URL leads. Parsed by the parser the client connects with, so what is checked is what is called."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Sequence
from ipaddress import IPv6Address, ip_address
from urllib.parse import unquote_to_bytes

import msgspec
from pyreqwest.http import Url

from ksana.targets.http.addresses import Address

MAX_URL = 2048

_ABSOLUTE = re.compile(r"https?://[^/?#\\]", re.IGNORECASE)
# The parser would drop or repair these silently, and then call something else than what is written.
_UNWRITABLE = re.compile(r"[\x00-\x20\x7f]")


class Destination(msgspec.Struct, frozen=True):
    """A URL taken apart; its credentials are kept beside it, never in it."""

    url: Url
    scheme: str
    host: str
    port: int
    literal: Address | None
    authorization: str
    target: str
    """What the request line asks for."""
    shown: str
    """The URL as people may see it."""

    @property
    def host_header(self) -> str:
        return self.host if self.url.port is None else f"{self.host}:{self.port}"

    def with_query(self, pairs: Sequence[tuple[str, str]]) -> Destination:
        """The same with these parameters added."""
        url = self.url.extend_query(pairs)
        return msgspec.structs.replace(self, url=url, target=_target(url), shown=_shown(url, bool(self.authorization)))

    def shares_credentials_with(self, other: Destination) -> bool:
        """Whether a secret of the one may go to the other: same origin, or its move from http to https."""
        if self.host != other.host:
            return False
        here, there = (self.scheme, self.port), (other.scheme, other.port)
        return here == there or (here, there) == (("http", 80), ("https", 443))


def destination_of(text: str) -> Destination:
    """Parse an absolute http or https URL, or raise ValueError with what is wrong with it."""
    if len(text) > MAX_URL:
        raise ValueError(f"is longer than {MAX_URL} characters")
    if _UNWRITABLE.search(text):
        raise ValueError("has a space or control character; write it percent-encoded, a space as %20")
    if not _ABSOLUTE.match(text):
        raise ValueError("is not absolute; write http://host/path or https://host/path")
    try:
        url = Url(text)
    except ValueError as error:
        raise ValueError(f"cannot be read: {error}") from None
    return _destination(url)


def redirected(base: Destination, location: str) -> Destination:
    """Where a Location header leads from here, without any credentials it may carry."""
    try:
        url = base.url.join(location)
    except ValueError as error:
        raise ValueError(f"cannot be read: {error}") from None
    if url.scheme not in ("http", "https"):
        raise ValueError(f"leads out of HTTP, to {url.scheme}:")
    return _destination(url.with_username("").with_password(None))


def _destination(url: Url) -> Destination:
    host, port = url.host_str, url.port_or_known_default
    if not host or port is None:
        raise ValueError("names no host; write http://host/path")
    username, password = url.username, url.password
    authorization = ""
    if username or password:
        pair = unquote_to_bytes(username) + b":" + unquote_to_bytes(password or "")
        authorization = "Basic " + b64encode(pair).decode("ascii")
        url = url.with_username("").with_password(None)
    if url.fragment is not None:
        url = url.with_fragment(None)
    return Destination(
        url=url,
        scheme=url.scheme,
        host=host,
        port=port,
        literal=None if url.domain is not None else _literal(host),
        authorization=authorization,
        target=_target(url),
        shown=_shown(url, bool(authorization)),
    )


def _target(url: Url) -> str:
    return url.path if url.query_string is None else f"{url.path}?{url.query_string}"


def _shown(url: Url, has_credentials: bool) -> str:
    text = str(url)
    return text.replace("://", "://***@", 1) if has_credentials else text


def _literal(host: str) -> Address:
    return IPv6Address(host[1:-1]) if host.startswith("[") else ip_address(host)
