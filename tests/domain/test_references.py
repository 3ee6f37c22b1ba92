from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ksana.domain.conditions import markers_of_condition
from ksana.domain.errors import InvalidArgument
from ksana.domain.references import (
    Scope,
    Unresolved,
    check_condition,
    has_markers,
    holds,
    references,
    render,
)

SCOPE = Scope(
    artifacts={
        "fetch": {"count": 3, "rows": [{"id": "a/b"}, {"id": "c"}], "none": None, "0": "zero", "tags": ["x", "y"]},
        "step 1.2-α 世界": {"ok": True},
        "said": "hello {{params.secret}} {{run_id}}",
    },
    params={"mode": "fast", "secret": "hush", "artifact": "p", "n": 2.5},
    has_item=True,
    item={"id": 7, "artifact": "own"},
    index=4,
)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("{{fetch.artifact.count}}", 3),
        ("{{ fetch.artifact.rows.1 }}", {"id": "c"}),
        ("{{fetch.artifact.0}}", "zero"),
        ("{{fetch.artifact.none}}", None),
        ("{{step 1.2-α 世界.artifact.ok}}", True),
        ("n = {{fetch.artifact.count}}, {{params.mode}}", "n = 3, fast"),
        ('{"row":{{fetch.artifact.rows.0}}}', '{"row":{"id":"a/b"}}'),
        ("{{{fetch.artifact.count}}}", "{3}"),
        ("{{item}}", SCOPE.item),
        ("{{item.id}}/{{index}}", "7/4"),
        # The words for parameters and items win over steps of that name.
        ("{{params.artifact}}{{item.artifact}}", "pown"),
        (
            "{{run_id}} {{input.x}} {{callback_url}} {{}} {{ {{params}}",
            "{{run_id}} {{input.x}} {{callback_url}} {{}} {{ {{params}}",
        ),
    ],
)
def test_a_marker_becomes_what_it_stands_for(text: str, value: Any) -> None:
    assert render(text, SCOPE) == value
    assert render({"a": [1, {"b": text}]}, SCOPE) == {"a": [1, {"b": value}]}


def test_what_was_filled_in_is_never_looked_at_again() -> None:
    assert render("{{said.artifact}}", SCOPE) == SCOPE.artifacts["said"]
    assert render("-{{said.artifact}}-{{params.mode}}", SCOPE) == f"-{SCOPE.artifacts['said']}-fast"


def test_names_of_fields_stay_and_a_value_without_markers_is_the_very_same_object() -> None:
    config = {"{{fetch.artifact.count}}": "{{run_id}}", "deep": [{"x": None}]}
    assert not has_markers(config)
    assert render(config, SCOPE) is config
    assert references(config) == frozenset()


def test_references_are_found_however_deep() -> None:
    deep: Any = "{{b.c.artifact.x}}"
    for _ in range(5000):
        deep = [deep]
    assert references({"a": "{{a.artifact}} {{params.p}} {{item.artifact}}", "b": deep}) == {"a", "b.c"}
    with pytest.raises(Unresolved, match="nested more than"):
        render(deep, SCOPE)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("{{gone.artifact.x}}", "{{gone.artifact.x}} stands for nothing: node 'gone' has left no artifact"),
        ("{{fetch.artifact.rows.2}}", "the artifact of node 'fetch' has no '2' there"),
        ("{{fetch.artifact.count.x}}", "the artifact of node 'fetch' has no 'x' there"),
        ("{{fetch.artifact.}}", "the artifact of node 'fetch' has no '' there"),
        ("a {{params.nope}}", "what the chain was started with has no 'nope' there"),
        ("{{item.nope}}", "the item has no 'nope' there"),
    ],
)
def test_a_marker_that_stands_for_nothing_is_named(text: str, sentence: str) -> None:
    with pytest.raises(Unresolved) as unresolved:
        render(text, SCOPE)
    assert sentence in str(unresolved.value)


def test_there_is_no_item_without_a_map_and_no_text_without_an_end() -> None:
    with pytest.raises(Unresolved, match="the node has no map"):
        render("{{item}}", Scope({}, {}))
    with pytest.raises(Unresolved, match="more than"):
        render("{{a.artifact}}" * 3, Scope({"a": "x" * 8_000_000}, {}))


@pytest.mark.parametrize(
    ("condition", "is_met"),
    [
        ("fetch.artifact.count > 2", True),
        ("fetch.artifact.count>=3 and not (params.mode == 'slow')", True),
        ('{{step 1.2-α 世界.artifact.ok}} == true and params.mode in ["fast", "full"]', True),
        ("params.mode not in ['fast']", False),
        ("'x' in fetch.artifact.tags", True),
        ("'as' in params.mode", True),
        ("'count' in fetch.artifact", True),
        ("fetch.artifact.missing == null", True),
        ("gone.artifact", False),
        ("gone.artifact and gone.artifact.n > 3", False),
        ("not gone.artifact or gone.artifact.n > 3", True),
        ("item.id == 7 and index < 5", True),
        ("params.n <= 2.5e0", True),
        ("-1 < 0", True),
        ("true == 1", False),
        ("false or 0 or '' or [] or null", False),
        ("1 == 2 or 1 == 1 and 1 == 2", False),
        ("(1 == 1 or 1 == 2) and 1 != 2", True),
        ("not 1 == 2", True),
        ("\"it's\" == 'it\\'s'", True),
        ('\'say "hi"\' == "say \\"hi\\""', True),
        ('{"a": [1]} == {"a": [1]}', True),
        ("'b' > 'a'", True),
    ],
)
def test_a_condition_is_met_or_not(condition: str, is_met: bool) -> None:
    check_condition(condition)
    assert holds(condition, SCOPE) is is_met


@pytest.mark.parametrize("condition", ["1 < 'a'", "null > 1", "true < 2", "[1] <= [2]", "1 in 2", "1 in gone.artifact"])
def test_what_has_no_order_is_not_compared(condition: str) -> None:
    with pytest.raises(Unresolved):
        holds(condition, SCOPE)


@pytest.mark.parametrize(
    "condition",
    [
        "",
        "and",
        "1 ==",
        "== 1",
        "(1",
        "1)",
        "1 < 2 < 3",
        "1 not in [1] == 2",
        "a b",
        "count > 3",
        "__import__('os')",
        "params.x()",
        "params.x = 1",
        "a.artifact && b.artifact",
        "{{a.artifact",
        "{{run_id}} == 1",
        "'open",
        '"open',
        "[1, ",
        "[NaN] == 1",
        "not",
        "(" * 40 + "1" + ")" * 40,
        "not " * 40 + "1",
        "[" * 4000,
        "1 or " * 900 + "1",
    ],
)
def test_everything_else_is_refused_with_a_sentence(condition: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        check_condition(condition)
    assert refused.value.message


def test_a_long_condition_is_read_without_recursion() -> None:
    assert holds("0 or " * 800 + "1", SCOPE)
    assert not holds("not " * 31 + "1", SCOPE)


def test_the_markers_of_a_condition_are_known() -> None:
    named = markers_of_condition("not (a.artifact.x == 1 or {{b c.artifact}} in [1]) and params.p")
    assert {marker.text for marker in named} == {"a.artifact.x", "b c.artifact", "params.p"}


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)


@given(_JSON, _JSON)
@settings(max_examples=50)
def test_values_survive_being_filled_in_and_compared(left: Any, right: Any) -> None:
    scope = Scope({"a": left, "b": right}, {})
    assert render("{{a.artifact}}", scope) is left
    assert holds("a.artifact == a.artifact", scope)
    assert holds("a.artifact != b.artifact", scope) is not holds("a.artifact == b.artifact", scope)
    literal = msgspec.json.encode(left).decode()
    assert holds(f"a.artifact == {literal}", scope)


@given(st.text(alphabet="ab.artifct{} ()<=!&'\"[],0-", max_size=30))
def test_no_text_breaks_the_reader(text: str) -> None:
    try:
        check_condition(text)
    except InvalidArgument:
        return
    try:
        holds(text, SCOPE)
    except Unresolved:
        return
