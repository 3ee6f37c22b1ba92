from ipaddress import ip_address

import pytest

from ksana.targets.http import TargetPolicy
from ksana.targets.http.addresses import Place, place_of
from tests.targets.http.attempts import CLOSED, OPEN


@pytest.mark.parametrize(
    ("address", "place"),
    [
        ("93.184.216.34", Place.PUBLIC),
        ("2606:2800:220:1:248:1893:25c8:1946", Place.PUBLIC),
        ("127.0.0.1", Place.LOOPBACK),
        ("127.255.0.9", Place.LOOPBACK),
        ("::1", Place.LOOPBACK),
        ("10.1.2.3", Place.PRIVATE),
        ("172.31.255.255", Place.PRIVATE),
        ("172.32.0.1", Place.PUBLIC),
        ("192.168.1.1", Place.PRIVATE),
        ("100.64.0.1", Place.PRIVATE),
        ("198.18.0.1", Place.PRIVATE),
        ("203.0.113.9", Place.PRIVATE),
        ("fd12:3456::1", Place.PRIVATE),
        ("fec0::1", Place.PRIVATE),
        ("2001:db8::1", Place.PRIVATE),
        ("169.254.169.254", Place.FORBIDDEN),
        ("169.254.1.1", Place.FORBIDDEN),
        ("100.100.100.200", Place.FORBIDDEN),
        ("168.63.129.16", Place.FORBIDDEN),
        ("192.0.0.192", Place.FORBIDDEN),
        ("fd00:ec2::254", Place.FORBIDDEN),
        ("fd20:ce::254", Place.FORBIDDEN),
        ("fe80::1", Place.FORBIDDEN),
        ("0.0.0.0", Place.FORBIDDEN),
        ("0.1.2.3", Place.FORBIDDEN),
        ("::", Place.FORBIDDEN),
        ("224.0.0.1", Place.FORBIDDEN),
        ("240.0.0.1", Place.FORBIDDEN),
        ("255.255.255.255", Place.FORBIDDEN),
        ("ff02::1", Place.FORBIDDEN),
        ("100::1", Place.FORBIDDEN),
    ],
)
def test_every_address_has_its_place(address: str, place: Place) -> None:
    assert place_of(ip_address(address)) is place


@pytest.mark.parametrize(
    "form",
    [
        "::ffff:{v4}",
        "::ffff:0:{v4}",
        "::{v4}",
        "64:ff9b::{v4}",
        "2002:{hi}:{lo}::1",
        "2001:0:{hi}:{lo}::a247:27dd",
        "2001:0:5db8:d822::{not_hi}:{not_lo}",
        "2606:2800::5efe:{v4}",
        "2606:2800::200:5efe:{v4}",
    ],
)
@pytest.mark.parametrize(
    ("v4", "place"),
    [
        ("127.0.0.1", Place.LOOPBACK),
        ("10.0.0.1", Place.PRIVATE),
        ("169.254.169.254", Place.FORBIDDEN),
        ("0.0.0.0", Place.FORBIDDEN),
    ],
)
def test_an_address_is_as_dangerous_as_the_one_it_carries(form: str, v4: str, place: Place) -> None:
    number = int(ip_address(v4))
    text = form.format(
        v4=v4,
        hi=f"{number >> 16:x}",
        lo=f"{number & 0xFFFF:x}",
        not_hi=f"{~number >> 16 & 0xFFFF:x}",
        not_lo=f"{~number & 0xFFFF:x}",
    )
    assert place_of(ip_address(text)) is place


def test_an_address_that_carries_a_public_one_is_public() -> None:
    assert place_of(ip_address("64:ff9b::93.184.216.34")) is Place.PUBLIC
    assert place_of(ip_address("::ffff:93.184.216.34")) is Place.PUBLIC


def refusal(policy: TargetPolicy, host: str, address: str) -> str | None:
    return policy.refusal(host, ip_address(address))


def test_a_server_on_loopback_may_call_its_own_network() -> None:
    assert refusal(OPEN, "127.0.0.1", "127.0.0.1") is None
    assert refusal(OPEN, "db", "192.168.0.3") is None


def test_a_server_reachable_by_others_may_not_and_says_how_to_allow_it() -> None:
    assert refusal(CLOSED, "db", "192.168.0.3") == (
        "not called: db is 192.168.0.3, a private address, and a server reachable by others calls those only if "
        "told to; add db or its network to executor.allow_net"
    ).removeprefix("not called: ")
    assert "127.0.0.1 is a loopback address" in (refusal(CLOSED, "127.0.0.1", "127.0.0.1") or "")
    assert refusal(CLOSED, "example.com", "93.184.216.34") is None


@pytest.mark.parametrize(
    ("entry", "host", "address"),
    [
        ("10.0.0.0/8", "db", "10.1.2.3"),
        ("10.1.2.3", "10.1.2.3", "10.1.2.3"),
        ("10.0.0.0/8", "db", "::ffff:10.1.2.3"),
        ("fd00::/8", "db", "fd01::1"),
        ("db", "db", "172.16.0.1"),
        ("DB.Corp.", "db.corp", "172.16.0.1"),
        ("*.corp", "db.corp", "172.16.0.1"),
        ("*.corp", "a.db.corp.", "127.0.0.1"),
    ],
)
def test_what_is_listed_is_allowed(entry: str, host: str, address: str) -> None:
    policy = TargetPolicy.of(allow_loopback=False, allow_private=False, allowed=[entry])
    assert refusal(policy, host, address) is None


@pytest.mark.parametrize(
    ("entry", "host", "address"),
    [
        ("10.0.0.0/8", "db", "192.168.0.1"),
        ("db", "db2", "10.0.0.1"),
        ("*.corp", "corp", "10.0.0.1"),
        ("*.corp", "xcorp", "10.0.0.1"),
    ],
)
def test_what_is_not_listed_is_refused(entry: str, host: str, address: str) -> None:
    policy = TargetPolicy.of(allow_loopback=False, allow_private=False, allowed=[entry])
    assert refusal(policy, host, address) is not None


@pytest.mark.parametrize(
    "address", ["169.254.169.254", "fd00:ec2::254", "0.0.0.0", "fe80::1", "::ffff:169.254.169.254"]
)
def test_some_places_are_never_called_whatever_is_listed(address: str) -> None:
    policy = TargetPolicy.of(allow_loopback=True, allow_private=True, allowed=["0.0.0.0/0", "::/0", "meta"])
    assert "change target.url" in (refusal(policy, "meta", address) or "")
