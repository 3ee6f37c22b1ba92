"""Where a URL leads. What is taken apart here is looked up, checked and connected to: nobody parses it again."""

from __future__ import annotations

import re
import socket
from base64 import b64encode
from collections.abc import Sequence
from ipaddress import IPv4Address, IPv6Address
from urllib.parse import parse_qsl, quote, unquote_to_bytes, urlencode, urljoin

import msgspec

from ksana.targets.http.addresses import Address

MAX_URL = 2048

_PORTS = {"http": 80, "https": 443}
_URL = re.compile(
    r"(?P<scheme>https?)://(?:(?P<userinfo>[^/?#\\@]*)@)?"
    r"(?P<host>\[[0-9a-f:.]*\]|[^/?#\\@:\[\]]+)(?::(?P<port>[0-9]*))?"
    r"(?P<path>/[^?#]*)?(?:\?(?P<query>[^#]*))?(?:#.*)?",
    re.IGNORECASE | re.DOTALL,
)
_ABSOLUTE = re.compile(r"https?://[^/?#]", re.IGNORECASE)
_UNWRITABLE = re.compile(r"[\x00-\x20\x7f]")
_HOST = re.compile(r"(?:[a-z0-9_](?:[a-z0-9_-]{0,62})\.)*[a-z0-9_][a-z0-9_-]{0,62}\.?")
# A name whose last label is a number is an IPv4 address in one of its older spellings, or nothing at all.
_NUMERIC = re.compile(r"(?:.*\.)?(?:[0-9]+|0x[0-9a-f]*)\.?")
_KEPT = "!$&'()*+,;=:@/-._~%"


class Destination(msgspec.Struct, frozen=True):
    """A URL taken apart; its credentials are kept beside it, never in it."""

    scheme: str
    host: str
    port: int
    target: str
    """What the request line asks for: path and query."""
    literal: Address | None = None
    authorization: str = ""

    @property
    def host_header(self) -> str:
        return self.host if self.port == _PORTS[self.scheme] else f"{self.host}:{self.port}"

    @property
    def shown(self) -> str:
        """The URL as people may see it."""
        mask = "***@" if self.authorization else ""
        return f"{self.scheme}://{mask}{self.host_header}{self.target}"

    @property
    def parameters(self) -> set[str]:
        """The names in the query."""
        return {name for name, _ in parse_qsl(self.target.partition("?")[2], keep_blank_values=True)}

    def with_parameters(self, pairs: Sequence[tuple[str, str]]) -> Destination:
        """The same with these parameters added."""
        joint = "&" if "?" in self.target else "?"
        return msgspec.structs.replace(self, target=self.target + joint + urlencode(pairs)) if pairs else self

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
    return _parsed(text)


def redirected(base: Destination, location: str) -> Destination:
    """Where a Location header leads from here, without any credentials it may carry."""
    try:
        # A space there is against the rules, common, and understood by every browser.
        url = urljoin(f"{base.scheme}://{base.host_header}{base.target}", location.strip().replace(" ", "%20"))
    except ValueError as error:
        raise ValueError(f"cannot be read: {error}") from None
    scheme = url.partition(":")[0].lower()
    if scheme not in _PORTS:
        raise ValueError(f"leads out of HTTP, to {scheme}:")
    return msgspec.structs.replace(_parsed(url), authorization="")


def _parsed(text: str) -> Destination:
    if not _ABSOLUTE.match(text):
        raise ValueError("is not absolute; write http://host/path or https://host/path")
    if _UNWRITABLE.search(text):
        raise ValueError("has a space or control character; write it percent-encoded, a space as %20")
    match = _URL.fullmatch(text)
    if match is None:
        raise ValueError("cannot be read; write http://host:port/path?query")
    scheme = match["scheme"].lower()
    host, literal = _host(match["host"])
    return Destination(
        scheme=scheme,
        host=host,
        port=_port(match["port"]) if match["port"] else _PORTS[scheme],
        target=_target(match["path"], match["query"]),
        literal=literal,
        authorization=_authorization(match["userinfo"]) if match["userinfo"] else "",
    )


def _host(text: str) -> tuple[str, Address | None]:
    host = text.lower()
    if host.startswith("["):
        try:
            v6 = IPv6Address(host[1:-1])
        except ValueError:
            raise ValueError(f"has {text!r} for a host, which is no IPv6 address") from None
        return f"[{v6}]", v6
    if not host.isascii():
        try:
            host = host.encode("idna").decode("ascii")
        except UnicodeError:
            raise ValueError(f"has {text!r} for a host, which is no host name") from None
    if len(host) > 253 or not _HOST.fullmatch(host):
        raise ValueError(f"has {text!r} for a host, which is no host name")
    if not _NUMERIC.fullmatch(host):
        return host, None
    try:
        v4 = IPv4Address(socket.inet_aton(host.rstrip(".")))
    except OSError:
        raise ValueError(f"has {text!r} for a host, which is no IPv4 address") from None
    return str(v4), v4


def _port(text: str) -> int:
    if len(text) > 5 or not 0 < int(text) < 65536:
        raise ValueError("has a port that is not between 1 and 65535")
    return int(text)


def _target(path: str | None, query: str | None) -> str:
    target = quote(path or "/", safe=_KEPT)
    return target if query is None else f"{target}?{quote(query, safe=_KEPT + '?[]')}"


def _authorization(userinfo: str) -> str:
    username, _, password = userinfo.partition(":")
    pair = unquote_to_bytes(username) + b":" + unquote_to_bytes(password)
    return "Basic " + b64encode(pair).decode("ascii")
