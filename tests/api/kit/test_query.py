from __future__ import annotations

from typing import Any

import msgspec
import pytest

from ksana.api.kit.query import NoQuery, QueryReader
from ksana.domain.errors import InvalidArgument
from tests.api.kit.sample import Colour


class Query(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    text: str | None = None
    count: int = 0
    share: float = 0.5
    paused: bool | None = None
    colour: Colour | None = None
    tag: list[str] = msgspec.field(default_factory=list)
    number: list[int] | None = None


class Needed(msgspec.Struct, frozen=True):
    job: str


READER = QueryReader(Query)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"", {}),
        (b"text=a%20b+c", {"text": "a b c"}),
        (b"text=null", {"text": "null"}),
        (b"text=", {"text": ""}),
        (b"count=5&share=1.5", {"count": 5, "share": 1.5}),
        (b"paused=true", {"paused": True}),
        (b"colour=blue", {"colour": Colour.BLUE}),
        (b"tag=a&tag=b", {"tag": ["a", "b"]}),
        (b"number=1&number=2", {"number": [1, 2]}),
        (b"text=%E4%BB%BB", {"text": "任"}),
    ],
)
def test_a_query_string_becomes_its_struct(text: bytes, expected: dict[str, Any]) -> None:
    assert READER.read(text) == Query(**expected)


@pytest.mark.parametrize(
    ("text", "field"),
    [
        (b"cuont=5", "cuont"),
        (b"count=", "count"),
        (b"count=1&count=2", "count"),
        (b"count=99999999999999999999", "count"),
        (b"share=nan", "share"),
        (b"share=inf", "share"),
        (b"paused=1", "paused"),
        (b"paused=null", "paused"),
        (b"colour=null", "colour"),
        (b"colour=green", "colour"),
        (b"number=1&number=x", "number[1]"),
        (b"text=%00", "text"),
        (b"text=%ff", ""),
        (b"text=\xff", ""),
        (b"&".join([b"tag=a"] * 101), ""),
    ],
)
def test_a_wrong_query_is_refused_by_name(text: bytes, field: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        READER.read(text)
    assert [problem.field for problem in caught.value.problems] == [field]


def test_a_required_parameter_is_asked_for() -> None:
    with pytest.raises(InvalidArgument, match="job: is required"):
        QueryReader(Needed).read(b"")


def test_a_route_without_a_query_takes_no_parameter() -> None:
    assert QueryReader(NoQuery).read(b"") == NoQuery()
    with pytest.raises(InvalidArgument, match="page: is not a known field; there are none"):
        QueryReader(NoQuery).read(b"page=1")
