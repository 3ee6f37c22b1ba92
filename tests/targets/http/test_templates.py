from typing import Any

import msgspec
import pytest
from hypothesis import given as examples
from hypothesis import strategies as st

from ksana.targets.http import templates
from ksana.targets.http.templates import Place
from ksana.targets.http.variables import VARIABLES, Variables
from tests.targets.http.attempts import attempt

VALUES = Variables(attempt())

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def text(source: str, given: object = None, place: Place = Place.TEXT) -> str:
    template = templates.in_text(source, place)
    return source if template is None else template.fill(VALUES, given)


def json(source: str, given: object = None) -> str:
    template = templates.in_json(source)
    return source if template is None else template.fill(VALUES, given)


@pytest.mark.parametrize(
    ("marker", "value"),
    [
        ("{{run_id}}", "42"),
        ("{{ run_id }}", "42"),
        ("{{job_id}}", "job-7"),
        ("{{task_id}}", "job-7"),
        ("{{job_name}}", 'notify "order"'),
        ("{{scheduled_at}}", "2026-03-01T08:00:00Z"),
        ("{{scheduled_time}}", "2026-03-01T08:00:00Z"),
        ("{{triggered_at}}", "2026-03-01T08:00:02.500000Z"),
        ("{{attempt}}", "2"),
        ("{{fence}}", "3"),
        ("{{trace_id}}", "0af7651916cd43dd8448eb211c80319c"),
        ("{{callback_url}}", "http://ksana.test/api/v1/callbacks/tok"),
        ("{{callback_token}}", "tok"),
        ("{{idempotency_key}}", "42"),
    ],
)
def test_every_marker_has_a_value(marker: str, value: str) -> None:
    assert text(f"<{marker}>") == f"<{value}>"


def test_every_documented_name_is_filled() -> None:
    assert set(VARIABLES) == templates.NAMES


def test_text_without_markers_needs_no_template() -> None:
    assert templates.in_text("plain {not} a { { marker } }") is None
    assert templates.in_json('{"a": {"b": {"c": 1}}}') is None


@pytest.mark.parametrize("source", ["{{unknown}}", "{{run_id.x}}", "{{}}", "{{ 1 }}", "{{input.missing}}", "{{run_id"])
def test_what_cannot_be_filled_stays_as_it_is(source: str) -> None:
    assert text(source, {"there": 1}) == source
    assert json(f'{{"a": "{source}"}}', {"there": 1}) == f'{{"a": "{source}"}}'


def test_input_is_reached_by_path_through_objects_and_lists() -> None:
    given = {"order": {"items": [{"sku": "a"}, {"sku": "b"}]}}
    assert text("{{input.order.items.1.sku}}", given) == "b"
    assert text("{{input.order.items.2.sku}}", given) == "{{input.order.items.2.sku}}"


def test_in_text_a_value_that_is_no_text_is_written_as_json() -> None:
    assert text("{{input.n}} {{input.o}}", {"n": 5, "o": {"a": True}}) == '5 {"a":true}'
    assert text("{{input}}", [1, None]) == "[1,null]"


def test_an_inserted_value_is_not_filled_again() -> None:
    assert text("{{input.a}}", {"a": "{{run_id}}"}) == "{{run_id}}"
    assert json('["{{input.a}}"]', {"a": "{{run_id}}"}) == '["{{run_id}}"]'


def test_in_a_url_a_value_cannot_leave_its_place() -> None:
    given = {"id": "../a b?c=1&d#é"}
    assert text("http://h/{{input.id}}?x=1", given, Place.URL) == "http://h/..%2Fa%20b%3Fc%3D1%26d%23%C3%A9?x=1"


def test_in_a_form_a_value_cannot_leave_its_place() -> None:
    assert text("a={{input.a}}&b=1", {"a": "x y&c=2"}, Place.FORM) == "a=x+y%26c%3D2&b=1"


def test_inside_a_json_string_a_value_is_escaped() -> None:
    assert json('{"who": "to {{job_name}}\\n"}') == '{"who": "to notify \\"order\\"\\n"}'
    assert json('{"a": "x{{input}}"}', {"k": "v"}) == '{"a": "x{\\"k\\":\\"v\\"}"}'


def test_a_string_that_is_only_an_input_marker_becomes_that_value() -> None:
    given = {"n": 5, "o": {"a": [1]}, "s": 'say "hi"', "z": None}
    source = '{"n": "{{input.n}}", "o":"{{ input.o }}","s": "{{input.s}}", "z": "{{input.z}}"}'
    assert msgspec.json.decode(json(source, given)) == given


def test_a_string_that_is_only_another_marker_stays_a_string() -> None:
    assert json('{"run": "{{run_id}}"}') == '{"run": "42"}'


def test_a_marker_outside_of_strings_becomes_a_json_value() -> None:
    source = '{"run": {{run_id}}, "name": {{job_name}}, "in": {{input}}}'
    assert json(source, {"a": 1}) == '{"run": 42, "name": "notify \\"order\\"", "in": {"a":1}}'


def test_a_marker_as_a_key_stays_a_string() -> None:
    assert json('{"{{input.k}}" : 1}', {"k": 'a"b'}) == '{"a\\"b" : 1}'


def test_escaped_quotes_do_not_end_a_string() -> None:
    assert json('{"a": "\\"{{input.x}}\\"", "b": {{attempt}}}', {"x": "1"}) == '{"a": "\\"1\\"", "b": 2}'


def test_everything_around_markers_stays_byte_for_byte() -> None:
    source = '{ "z":1,\n\t"a" : 1.50, "a":2, "é": "\\u00e9", "r":"{{run_id}}" }\n'
    assert json(source) == source.replace("{{run_id}}", "42")


def test_the_service_fills_the_fields_left_to_it() -> None:
    filled = json(
        '{"event": "order", "job_id": "<filled-by-service>", "run_id" : "<filled-by-service>",'
        '"scheduled_at": "<filled-by-service>", "triggered_at": "<filled-by-service>", "other": "<filled-by-service>"}'
    )
    assert msgspec.json.decode(filled) == {
        "event": "order",
        "job_id": "job-7",
        "run_id": "42",
        "scheduled_at": "2026-03-01T08:00:00Z",
        "triggered_at": "2026-03-01T08:00:02.500000Z",
        "other": "<filled-by-service>",
    }


def test_only_objects_have_fields_left_to_the_service() -> None:
    source = '[{"run_id": "<filled-by-service>"}]'
    assert json(source) == source


@examples(JSON)
def test_any_input_survives_the_way_through_json(value: object) -> None:
    filled = json('{"value": "{{input.v}}", "text": "<{{input.v}}>", "bare": {{input.v}}}', {"v": value})
    decoded = msgspec.json.decode(filled)
    shown = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    assert decoded == {"value": value, "text": f"<{shown}>", "bare": value}


@examples(st.text(alphabet='{}"\\ :ruid_nput.<>x\n', max_size=60))
def test_no_text_breaks_the_scanner(source: str) -> None:
    text(source, {})
    json(source, {})


def test_a_long_text_of_half_markers_is_read_in_linear_time() -> None:
    assert json('{"\\"' * 100_000) == '{"\\"' * 100_000 + ""
    assert text("{{ " * 100_000 + "{{x") == "{{ " * 100_000 + "{{x"


HOSTILE = '../admin?x={{callback_token}}\r\n"{{params.secret}}'
STEP = Variables(
    msgspec.structs.replace(
        attempt(),
        step="push",
        artifacts={"fetch": {"n": 3, "evil": HOSTILE}, "input": {"x": "of a step"}, 'odd "id" 世界': [1]},
        params={"secret": "hush", "base": "https://api.test/v1"},
        item={"id": "a/b"},
        index=4,
    )
)


def in_step(source: str, place: Place | None = Place.TEXT, given: Any = None) -> str:
    template = templates.in_json(source) if place is None else templates.in_text(source, place)
    return source if template is None else template.fill(STEP, given)


@pytest.mark.parametrize(
    ("source", "place", "filled"),
    [
        ("{{run_id}} {{fetch.artifact.n}} {{params.secret}} {{index}}", Place.TEXT, "42 3 hush 4"),
        ("http://h/{{item.id}}?q={{fetch.artifact.n}}", Place.URL, "http://h/a%2Fb?q=3"),
        ("{{params.base}}/{{item.id}}", Place.URL, "https://api.test/v1/a%2Fb"),
        ("<{{odd \"id\" 世界.artifact.0}}>", Place.TEXT, "<1>"),
        ('{"a":"{{odd \\"id\\" 世界.artifact}}","b":"{{item}}","c":"-{{item.id}}-","d":{{index}}}', None,
         '{"a":[1],"b":{"id":"a/b"},"c":"-a/b-","d":4}'),
        # A step may be called what the run's input is called.
        ("{{input.artifact.x}} {{input.y}}", Place.TEXT, "of a step 2"),
    ],
)  # fmt: skip
def test_markers_of_a_chain_are_filled_in_its_steps(source: str, place: Place | None, filled: str) -> None:
    assert in_step(source, place, {"y": 2}) == filled
    if "run_id" not in source and "input" not in source:
        assert (json(source) if place is None else text(source, place=place)) == source


def test_an_artifact_cannot_smuggle_anything_in() -> None:
    assert in_step("{{fetch.artifact.evil}}") == HOSTILE
    filled = in_step('{"x":"{{fetch.artifact.evil}}","y":"{{run_id}}{{fetch.artifact.evil}}"}', None)
    assert msgspec.json.decode(filled) == {"x": HOSTILE, "y": f"42{HOSTILE}"}
    assert in_step("http://h/{{fetch.artifact.evil}}", Place.URL).isascii()
    assert "/admin" not in in_step("http://h/{{fetch.artifact.evil}}", Place.URL)


def test_a_marker_of_a_chain_that_stands_for_nothing_is_an_error() -> None:
    with pytest.raises(ValueError, match="node 'gone' has left no artifact"):
        in_step("{{gone.artifact}}")
