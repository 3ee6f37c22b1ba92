from typing import Any

import pytest

from ksana.domain.errors import InvalidArgument
from ksana.targets.http import HttpTarget
from tests.targets.http.attempts import http_target

URL = "https://example.com/hook"


def problems(config: dict[str, Any]) -> dict[str, str]:
    with pytest.raises(InvalidArgument) as caught:
        http_target().check(config)
    return {problem.field: problem.message for problem in caught.value.problems}


def test_defaults_are_filled_in(target: HttpTarget) -> None:
    assert target.check({"url": URL}) == {"method": "POST", "url": URL, "headers": {}, "mode": "sync"}


def test_a_full_config_comes_back_as_it_is(target: HttpTarget) -> None:
    config = {
        "method": "PUT",
        "url": "https://user:secret@example.com:8443/{{run_id}}?at={{ scheduled_at }}",
        "headers": {"X-Tenant": "{{input.tenant}}", "Content-Type": "application/json"},
        "json": {"a": [1, None, "{{input.a}}"]},
        "mode": "async",
    }
    assert target.check(config) == config
    assert target.check(target.check(config)) == config


def test_a_method_may_be_written_small(target: HttpTarget) -> None:
    for method in ("get", "post", "put", "patch", "delete", "head", "options"):
        assert target.check({"url": URL, "method": method})["method"] == method.upper()


def test_fields_left_empty_are_left_out(target: HttpTarget) -> None:
    empty = {"url": URL, "method": None, "headers": None, "body": None, "json": None, "mode": None}
    assert target.check(empty) == target.check({"url": URL})


def test_every_field_at_fault_is_named() -> None:
    found = problems(
        {
            "method": "BREW",
            "url": "ftp://example.com",
            "headers": {"Bad Name": "x", "X-Line": "a\nb", "X-Nul": "\0", "X-Number": 5, "X-Fine": "é\t1"},
            "body": "x",
            "json": {},
            "mode": "later",
            "colour": "red",
        }
    )
    assert set(found) == {
        "target.method",
        "target.url",
        "target.headers.Bad Name",
        "target.headers.X-Line",
        "target.headers.X-Nul",
        "target.headers.X-Number",
        "target.json",
        "target.mode",
        "target.colour",
    }


@pytest.mark.parametrize(
    "url",
    [
        None,
        "",
        5,
        "example.com/x",
        "/x",
        "//example.com",
        "http://",
        "http:///x",
        "http:example.com",
        "https://?x",
        "file:///etc/passwd",
        "gopher://example.com",
        "http://example.com:99999/",
        "http://exa mple.com/",
        "http://example.com/a b",
        "http://example.com/\nx",
        "http://[::1",
        "http://1.2.3.4.5/",
        "http://example.com/{{ unknown }}",
        "{{input.url}}",
        "http://example.com/" + "a" * 2048,
    ],
)
def test_a_url_that_cannot_be_called_is_refused(url: Any) -> None:
    assert set(problems({"url": url})) == {"target.url"}


def test_a_host_may_be_filled_in_later(target: HttpTarget) -> None:
    assert target.check({"url": "https://{{input.tenant}}.example.com/{{ input.path }}"})


@pytest.mark.parametrize("name", ["Content-Length", "transfer-encoding", "Upgrade", "Trailer"])
def test_headers_that_frame_the_message_are_not_the_jobs(name: str) -> None:
    assert set(problems({"url": URL, "headers": {name: "1"}})) == {f"target.headers.{name}"}


def test_a_header_in_two_spellings_is_refused() -> None:
    assert set(problems({"url": URL, "headers": {"X-A": "1", "x-a": "2"}})) == {"target.headers.x-a"}


def test_text_that_is_no_unicode_is_refused() -> None:
    found = problems({"url": URL, "headers": {"X-A": "\ud800"}, "body": "\ud800"})
    assert set(found) == {"target.headers.X-A", "target.body"}


def test_headers_and_bodies_of_a_wrong_type_are_refused() -> None:
    assert set(problems({"url": URL, "headers": ["X-A"], "body": {"a": 1}})) == {"target.headers", "target.body"}
    assert set(problems({"url": URL, "json": object()})) == {"target.json"}


def test_only_async_configs_await_a_callback(target: HttpTarget) -> None:
    assert target.awaits_callback(target.check({"url": URL, "mode": "async"}))
    assert not target.awaits_callback(target.check({"url": URL}))
    for given, waits in (
        ({"mode": "async"}, True),
        ({"mode": "sync"}, False),
        (None, False),
        ("async", False),
        ([], False),
    ):
        assert target.awaits_callback(target.check({"url": URL}), given) is waits


def test_global_headers_are_checked_too() -> None:
    with pytest.raises(InvalidArgument, match=r"executor\.global_headers\.X-A"):
        http_target(global_headers={"X-A": "a\r\nb"})
