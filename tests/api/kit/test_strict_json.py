from __future__ import annotations

import json
from datetime import datetime
from enum import Enum
from typing import Annotated, Any, Literal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ksana.api.kit.errors import InvalidJson
from ksana.api.kit.strict_json import MAX_DEPTH, Input, JsonReader, read_tree
from ksana.domain.errors import InvalidArgument, KsanaError


class Kind(Enum):
    FAST = "fast"
    SLOW = "slow"


class Every(Input, frozen=True, tag_field="type", tag="every"):
    seconds: Annotated[int, msgspec.Meta(ge=1)]


class Cron(Input, frozen=True, tag_field="type", tag="cron"):
    expr: str

    def __post_init__(self) -> None:
        if self.expr == "never":
            raise InvalidArgument.of("expr", "never fires")
        if self.expr == "odd":
            raise ValueError("odd is not a cron expression")


class Retry(Input, frozen=True):
    limit: int = 0
    delay: float = 1.0


class Body(Input, frozen=True):
    name: Annotated[str, msgspec.Meta(min_length=1)]
    schedule: Every | Cron | None = None
    retry: Retry | None = None
    retries: dict[str, Retry] = msgspec.field(default_factory=dict)
    kind: Kind = Kind.FAST
    mode: Literal["a", "b"] | None = None
    tags: list[str] = msgspec.field(default_factory=list)
    at: Annotated[datetime, msgspec.Meta(tz=True)] | None = None
    payload: Any = None


class Tolerant(msgspec.Struct, frozen=True):
    name: str = ""


READER: JsonReader[Body] = JsonReader(Body)


def problems(body: object) -> dict[str, str]:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    with pytest.raises(InvalidArgument) as caught:
        READER.read(raw)
    return {problem.field: problem.message for problem in caught.value.problems}


def test_a_good_body_becomes_its_struct() -> None:
    body = READER.read(b'{"name":"a","schedule":{"type":"every","seconds":5},"retry":{"limit":2}}')
    assert body == Body(name="a", schedule=Every(seconds=5), retry=Retry(limit=2))


def test_every_problem_is_reported_at_once_with_its_path() -> None:
    found = problems(
        {
            "schedule": {"type": "every", "seconds": 0},
            "retry": {"limit": "x", "delay": None},
            "retries": {"first": {"limit": []}},
            "kind": "medium",
            "mode": "c",
            "tags": ["ok", 1, "ok", None],
            "at": "yesterday",
            "nmae": "a",
        }
    )
    assert found.keys() == {
        "name",
        "nmae",
        "schedule.seconds",
        "retry.limit",
        "retry.delay",
        "retries.first.limit",
        "kind",
        "mode",
        "tags[1]",
        "tags[3]",
        "at",
    }
    assert found["name"] == "is required"
    assert found["nmae"] == "is not a known field; did you mean name?"
    assert found["kind"] == "must be one of fast, slow"
    assert found["mode"] == "must be one of a, b"
    assert found["tags[1]"] == "expected str, got int"


def test_an_unknown_tag_is_answered_with_the_known_ones() -> None:
    found = problems({"name": "a", "schedule": {"type": "evrey", "seconds": 1}})
    assert found == {"schedule.type": "evrey is not one of cron, every; did you mean every?"}
    assert problems({"name": "a", "schedule": {}}) == {"schedule.type": "is required: one of cron, every"}


def test_a_rule_of_the_domain_is_reported_at_its_place() -> None:
    assert problems({"name": "", "schedule": {"type": "cron", "expr": "never"}}) == {
        "name": "expected str of length >= 1",
        "schedule.expr": "never fires",
    }
    assert problems({"name": "a", "schedule": {"type": "cron", "expr": "odd"}}) == {
        "schedule": "odd is not a cron expression"
    }


def test_a_value_of_the_wrong_kind_is_named_where_it_stands() -> None:
    assert problems([1]) == {"": "expected object, got array"}
    assert problems({"name": "a", "schedule": 5}) == {"schedule": "expected object | null, got int"}
    assert problems({"name": "a", "retry": [1]}) == {"retry": "expected object | null, got array"}
    assert problems({"name": "a", "tags": {}}) == {"tags": "expected array, got object"}


def test_a_flood_of_problems_is_cut_short() -> None:
    assert len(problems({"name": "a", "tags": [1] * 1000})) == 50


def test_the_first_problem_of_a_very_long_list_is_still_found() -> None:
    found = problems({"name": "a", "tags": ["x"] * 20_000 + [1]})
    assert found == {"tags[20000]": "expected str, got int"}


def test_what_cannot_be_stored_is_refused_in_a_large_body_without_its_place() -> None:
    padding = b'{"name":"a","tags":["' + b"x" * 300_000
    with pytest.raises(InvalidJson, match="U\\+0000"):
        READER.read(padding + b'\\u0000"]}')
    with pytest.raises(InvalidJson, match="64 bits"):
        READER.read(padding + b'"],"payload":99999999999999999999}')


def test_a_tolerant_struct_ignores_what_it_does_not_know() -> None:
    reader: JsonReader[Tolerant] = JsonReader(Tolerant)
    assert reader.read(b'{"name":"a","more":{"deep":[1]}}') == Tolerant("a")
    with pytest.raises(InvalidJson, match="twice"):
        reader.read(b'{"name":"a","more":{"b":1,"b":2}}')
    with pytest.raises(InvalidJson, match="UTF-8"):
        reader.read(b'{"name":"a","more":"\xff"}')


def test_older_spellings_are_adapted_before_conversion() -> None:
    reader: JsonReader[Body] = JsonReader(Body, lambda tree: {key.lower(): item for key, item in tree.items()})
    assert reader.read(b'{"NAME":"a"}') == Body(name="a")
    with pytest.raises(InvalidArgument):
        reader.read(b'{"NAME":5}')


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"   ",
        b"{",
        b'{"name":"a"} 2',
        b'{"name":"a",}',
        b'{"name":NaN}',
        b'{"payload":Infinity,"name":"a"}',
        b'{"payload":-Infinity,"name":"a"}',
        b'{"payload":1e999,"name":"a"}',
        b'\xef\xbb\xbf{"name":"a"}',
        '{"name":"a"}'.encode("utf-16"),
        b'{"name":"\xff"}',
        b'{"name":"\xed\xa0\x80"}',
        b'{"name":"\\ud800"}',
        b'{"name":"\\udc00\\ud800"}',
        b'{"name":"a\x00"}',
        b'{"name":"a\n"}',
        b'{"name":"a","name":"b"}',
        b'{"name":"a","n\\u0061me":"b"}',
        b'{"name":"a","payload":[{"x":{"y":1,"y":1}}]}',
        b"{'name':'a'}",
        b'{"name":"a"}//',
        b'{"name":"a","payload":' + b"9" * 5000 + b"}",
        b'{"name":"a","payload":' + b"[" * 100_000,
        b'{"name":"a","payload":' + b"[" * 900 + b"]" * 900 + b"}",
        b'{"name":"a","payload":' + b"[" * MAX_DEPTH + b"]" * MAX_DEPTH + b"}",
    ],
)
def test_what_is_not_strict_json_is_refused(body: bytes) -> None:
    with pytest.raises(InvalidJson) as caught:
        READER.read(body)
    assert caught.value.message


@pytest.mark.parametrize(
    "body",
    [
        b'{"name":"a","name":"b:c"}',
        b'{"name":"a","payload":"x\\u003a","payload":1}',
        b'{"name":"a","payload":1,"payload":"x\\u003a"}',
        b'{"name":"a","payload":{"":1,"":":"}}',
        b'{"name":"a:b","payload":[{"k":{"k":1,"k":1}}]}',
    ],
)
def test_no_colon_hides_a_key_that_appears_twice(body: bytes) -> None:
    with pytest.raises(InvalidJson, match="appears twice"):
        READER.read(body)


def test_the_reason_names_the_fix() -> None:
    for body, words in (
        (b"", "empty"),
        (b"\xef\xbb\xbf{}", "byte order mark"),
        (b'{"name":"a","name":"b"}', "'name' appears twice"),
        (b'{"name":"a","payload":' + b"[" * 64 + b"]" * 64 + b"}", "64 levels"),
        (b'{"name" "a"}', "byte 8"),
    ):
        with pytest.raises(InvalidJson, match=words):
            READER.read(body)


def test_the_deepest_allowed_body_is_read() -> None:
    depth = MAX_DEPTH - 1
    assert READER.read(b'{"name":"a","payload":' + b"[" * depth + b"]" * depth + b"}").name == "a"


def test_many_brackets_are_not_depth() -> None:
    for escaped in ("", "\u0001"):
        body = READER.read(json.dumps({"name": "a", "payload": [{}] * 500 + ["[" * 500, escaped]}).encode())
        assert len(body.payload) == 502


def test_nul_is_refused_where_it_stands_and_an_escaped_backslash_is_no_nul() -> None:
    found = problems(b'{"name":"a\\u0000","payload":[{"k":"\\u0000"},{"k\\u0000":1}]}')
    assert found.keys() == {"name", "payload[0].k", "payload[1]"}
    assert READER.read(b'{"name":"a\\\\u0000"}').name == "a\\u0000"


def test_integers_are_of_64_bits() -> None:
    assert READER.read(b'{"name":"a","payload":[9223372036854775807,-9223372036854775808]}').payload == [
        2**63 - 1,
        -(2**63),
    ]
    found = problems(b'{"name":"a","payload":{"big":9223372036854775808,"small":-9223372036854775809}}')
    assert found == dict.fromkeys(("payload.big", "payload.small"), "does not fit in 64 bits; send it as a string")
    assert problems(b'{"name":"a","payload":' + b"9" * 200 + b"}").keys() == {"payload"}


def test_text_beyond_ascii_is_kept() -> None:
    assert READER.read('{"name":"任务 \\ud83d\\ude00"}'.encode()).name == "任务 😀"


@given(st.binary(max_size=200))
def test_no_bytes_raise_anything_but_our_errors(body: bytes) -> None:
    _read_or_refuse(body)


_JSON_LIKE = st.recursive(
    st.sampled_from(
        [
            "null",
            "1",
            "-0",
            "1.5e3",
            "1e999",
            "NaN",
            '"a"',
            '"\\u0000"',
            '"\\ud800"',
            '"\xff"',
            "9" * 19,
            "9" * 4500,
        ]
    ),
    lambda inner: (
        st.lists(inner, max_size=4).map(lambda parts: f"[{','.join(parts)}]")
        | st.lists(
            st.tuples(
                st.sampled_from(["name", "schedule", "tags", "retry", "payload", "x", "type", "seconds", ""]),
                inner,
            ),
            max_size=4,
        ).map(lambda pairs: "{" + ",".join(f'"{key}":{item}' for key, item in pairs) + "}")
    ),
    max_leaves=12,
)


@given(_JSON_LIKE, st.sampled_from(["", " ", ",", "]", "\x00"]))
def test_no_json_like_text_raises_anything_but_our_errors(text: str, tail: str) -> None:
    _read_or_refuse((text + tail).encode())
    _read_or_refuse((text + tail).encode("latin-1"))


@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers(-(2**63), 2**63 - 1)
        | st.floats(allow_nan=False, allow_infinity=False)
        | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("abé"), inner, max_size=4),
        max_leaves=20,
    )
)
def test_everything_json_can_say_is_read_back_as_it_was(value: Any) -> None:
    assert read_tree(json.dumps(value).encode()) == value
    assert READER.read(json.dumps({"name": "a", "payload": value}).encode()).payload == value


def _read_or_refuse(body: bytes) -> None:
    for read in (READER.read, read_tree):
        try:
            read(body)
        except KsanaError as error:
            assert isinstance(error, InvalidArgument | InvalidJson)
            assert error.message
