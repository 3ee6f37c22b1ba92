"""What single values may look like."""

from datetime import timedelta

import pytest

from ksana.config import RefusedError, kinds
from ksana.config.kinds import Kind, Raw

DURATION = kinds.duration(timedelta(0), timedelta(days=365))


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("500ms", timedelta(milliseconds=500)),
        ("5s", timedelta(seconds=5)),
        ("1h30m", timedelta(minutes=90)),
        ("30d", timedelta(days=30)),
        ("1d12h", timedelta(hours=36)),
        ("15", timedelta(seconds=15)),
        (" 15s ", timedelta(seconds=15)),
    ],
)
def test_a_duration_is_read_and_written_back(text: str, span: timedelta) -> None:
    assert DURATION.parse(text) == span
    assert DURATION.parse(kinds.span_text(span)) == span


@pytest.mark.parametrize("text", ["", "banana", "-5s", "-1", "1.5", "d", "1d2d", "366d", "5 s", "999999d"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(RefusedError):
        DURATION.parse(text)


@pytest.mark.parametrize(
    ("kind", "raw"),
    [
        (kinds.HOST, ""),
        (kinds.HOST, "*"),
        (kinds.HOST, "localhost:80"),
        (kinds.HOST, "-a"),
        (kinds.HTTP_URL, "ftp://h"),
        (kinds.HTTP_URL, "http://"),
        (kinds.HTTP_URL, "http://h:x"),
        (kinds.HTTP_URL, "http://h?a=b"),
        (kinds.HTTP_URL, "http://h/#a"),
        (kinds.HTTP_URL, "http://h/a b"),
        (kinds.BASE_PATH, "/a/../b"),
        (kinds.BASE_PATH, "//a"),
        (kinds.HEADERS, {"Host": "a"}),
        (kinds.HEADERS, {"content-length": "1"}),
        (kinds.HEADERS, {"X A": "b"}),
        (kinds.HEADERS, {"X-A": "b\r\nX-B: c"}),
        (kinds.HEADERS, '{"X-A": 1}'),
        (kinds.HEADERS, ["X-A"]),
        (kinds.KEYS, "x" * 15),
        (kinds.KEYS, "x" * 16 + " y"),
        (kinds.KEYS, "钥" * 16),
        (kinds.ZONE, "Local"),
        (kinds.ZONE, "../etc/passwd"),
        (kinds.NETWORKS, "10.0.0.0/33"),
        (kinds.NETWORKS, "1.2.3"),
        (kinds.size(1, 10), "11"),
        (kinds.size(1, 10), "1TB"),
    ],
)
def test_a_value_outside_its_kind_is_refused(kind: Kind, raw: Raw) -> None:
    with pytest.raises(RefusedError):
        kind.parse(raw)


def test_brackets_around_an_address_are_dropped() -> None:
    assert kinds.HOST.parse("[::1]") == "::1"


def test_a_port_in_the_host_points_to_its_own_setting() -> None:
    with pytest.raises(RefusedError, match=r"server\.port"):
        kinds.HOST.parse("0.0.0.0:80")
