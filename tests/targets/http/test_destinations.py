from ipaddress import ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ksana.targets.http.destinations import destination_of, redirected


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("http://example.com", "http://example.com/"),
        ("HTTP://EXAMPLE.com:80/A?b=C#d", "http://example.com/A?b=C"),
        ("https://example.com:8443?x", "https://example.com:8443/?x"),
        ("https://example.com:/x", "https://example.com/x"),
        ("http://h/%7Ea/é?q=é&x=[1]", "http://h/%7Ea/%C3%A9?q=%C3%A9&x=[1]"),
        ("http://h/{{x}}", "http://h/%7B%7Bx%7D%7D"),
        ("http://bücher.example/", "http://xn--bcher-kva.example/"),
        ("http://my_service.internal./", "http://my_service.internal./"),
        ("http://[2001:DB8::0:1]:81/", "http://[2001:db8::1]:81/"),
        ("http://user:pw@h/x", "http://***@h/x"),
        ("http://0x7f.1/", "http://127.0.0.1/"),
        ("http://2130706433/", "http://127.0.0.1/"),
        ("http://0177.0.0.1./", "http://127.0.0.1/"),
    ],
)
def test_a_url_is_brought_into_one_form(url: str, shown: str) -> None:
    assert destination_of(url).shown == shown
    if "@" not in url:
        assert destination_of(shown).shown == shown


@pytest.mark.parametrize(
    "url",
    [
        "http://h\\@evil/",
        "http://a@b@c/",
        "http://-a/",
        "http://a..b/",
        "http://a%2fb/",
        "http://a,b/",
        "http://[::1]x/",
        "http://[fe80::1%25eth0]/",
        "http://h:0/",
        "http://h:65536/",
        "http://h:-1/",
        "http://256.1.1.1/",
        "http://1.2.3.4.5/",
        "http://example.0x/",
        "http://@/",
        f"http://{'a' * 70}.example/",
    ],
)
def test_what_could_be_read_in_two_ways_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match=r"^has |^cannot be read|^is not absolute"):
        destination_of(url)


def test_a_literal_address_is_known_as_one() -> None:
    assert destination_of("http://127.1/").literal == ip_address("127.0.0.1")
    assert destination_of("http://[::1]/").literal == ip_address("::1")
    assert destination_of("http://localhost/").literal is None


@pytest.mark.parametrize(
    ("location", "shown"),
    [
        ("/c?d", "http://h:81/c?d"),
        ("c", "http://h:81/a/c"),
        ("../c", "http://h:81/c"),
        ("?d", "http://h:81/a/b?d"),
        ("//other/x", "http://other/x"),
        ("https://user:pw@other/x", "https://other/x"),
        (" /c d ", "http://h:81/c%20d"),
        ("/" + "x" * 4000, "http://h:81/" + "x" * 4000),
    ],
)
def test_a_location_is_read_from_where_it_came(location: str, shown: str) -> None:
    assert redirected(destination_of("http://h:81/a/b?q"), location).shown == shown


@given(st.text(alphabet="htps:/@#?[]\\.%0x1-é a", max_size=40))
def test_any_text_is_a_url_or_a_value_error(text: str) -> None:
    for url in (text, f"http://{text}"):
        try:
            found = destination_of(url)
        except ValueError:
            continue
        assert found.target.isascii()
        assert found.target.startswith("/")
        assert destination_of(found.shown.replace("***@", "")).host == found.host
