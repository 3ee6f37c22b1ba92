"""A head that was read before means what the parser made of it then, and nothing else is taken for it."""

import pytest

from ksana.targets.http.answers import Answer
from ksana.targets.http.known_heads import KnownHeads

HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n"
OK = Answer(200, {"content-length": "2"}, b"ok", False)


@pytest.fixture
def heads() -> KnownHeads:
    heads = KnownHeads()
    heads.learn(HEAD + b"ok", OK)
    return heads


def test_the_body_is_the_one_that_came(heads: KnownHeads) -> None:
    assert heads.answer(HEAD + b"no", 10) == Answer(200, {"content-length": "2"}, b"no", False)


@pytest.mark.parametrize("data", [HEAD, HEAD + b"o", HEAD + b"ok!", HEAD[:-2], b"", b"HTTP/1.1 200 OK\r\n\r\nok"])
def test_anything_but_a_whole_answer_is_for_the_parser(heads: KnownHeads, data: bytes) -> None:
    assert heads.answer(data, 10) is None


def test_a_body_that_is_too_long_is_for_the_parser(heads: KnownHeads) -> None:
    assert heads.answer(HEAD + b"ok", 1) is None


def test_an_answer_behind_an_interim_one_is_not_learned() -> None:
    heads, interim = KnownHeads(), b"HTTP/1.1 102 Processing\r\n\r\n"
    heads.learn(interim + HEAD + b"ok", OK)
    assert heads.answer(interim + HEAD + b"ok", 10) is None


def test_a_body_that_says_by_itself_where_it_ends_is_not_learned() -> None:
    heads, head = KnownHeads(), b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    heads.learn(head + b"0\r\n\r\n", Answer(200, {"transfer-encoding": "chunked"}, b"", False))
    assert heads.answer(head + b"0\r\n\r\n", 10) is None


def test_long_heads_are_not_kept() -> None:
    heads, head = KnownHeads(), b"HTTP/1.1 200 OK\r\nX: " + b"y" * 4000 + b"\r\nContent-Length: 2\r\n\r\n"
    heads.learn(head + b"ok", OK)
    assert heads.answer(head + b"ok", 10) is None


def test_they_are_bounded(heads: KnownHeads) -> None:
    for number in range(2000):
        heads.learn(b"HTTP/1.1 200 OK\r\nX: %d\r\nContent-Length: 2\r\n\r\nok" % number, OK)
    assert len(heads) <= 512
