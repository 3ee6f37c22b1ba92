"""What a target really receives."""

import hmac
from base64 import b64encode
from typing import Any
from urllib.parse import parse_qs

import pytest

from ksana import __version__
from ksana.domain.outcomes import Outcome, Verdict
from ksana.targets.http import HttpTarget
from tests.kit.sink import Reply, Request, Sink
from tests.targets.http.attempts import NOW, TRACE, attempt, exchange_of
from tests.targets.http.conftest import MakeTarget


async def sent(target: HttpTarget, sink: Sink, config: dict[str, Any], **context: Any) -> Request:
    outcome = await target.execute(attempt(**context), {"url": f"{sink.url}/hook", **config})
    assert outcome.verdict in (Verdict.SUCCESS, Verdict.WAIT), outcome
    return sink.requests[-1]


async def test_every_attempt_says_what_it_is(target: HttpTarget, sink: Sink) -> None:
    request = await sent(target, sink, {})
    received = {name.lower(): value for name, value in request.headers}
    assert received == {
        "x-ksana-run-id": "42",
        "x-ksana-job-id": "job-7",
        "x-ksana-scheduled-at": "2026-03-01T08:00:00Z",
        "x-ksana-attempt": "2",
        "x-ksana-fence": "3",
        "idempotency-key": "42",
        "traceparent": f"00-{TRACE}-0000000000000003-01",
        "x-run-id": "42",
        "x-task-id": "job-7",
        "x-trace-id": TRACE,
        "user-agent": f"ksana/{__version__}",
        "accept": "*/*",
        "accept-encoding": "identity",
        "content-length": "0",
        "host": f"127.0.0.1:{sink.port}",
    }


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"])
async def test_every_method_arrives(target: HttpTarget, sink: Sink, method: str) -> None:
    assert (await sent(target, sink, {"method": method})).method == method


async def test_retries_differ_in_attempt_and_fence_only(target: HttpTarget, sink: Sink) -> None:
    first = await sent(target, sink, {}, attempt=1, fence=1)
    second = await sent(target, sink, {}, attempt=2, fence=2)
    changed = {name.lower() for name, value in first.headers if second.header(name) != value}
    assert changed == {"x-ksana-attempt", "x-ksana-fence", "traceparent"}


async def test_a_body_without_markers_arrives_byte_for_byte(target: HttpTarget, sink: Sink) -> None:
    body = ' {"b" : 1.50,\n "a": "\\u00e9 é", "a": {} }\r\n'
    assert (await sent(target, sink, {"body": body})).body == body.encode()


@pytest.mark.parametrize(
    ("config", "content_type"),
    [
        ({"body": '{"a": 1}'}, "application/json"),
        ({"body": " [1]\n"}, "application/json"),
        ({"body": '{"run": {{run_id}}}'}, "application/json"),
        ({"json": "just text"}, "application/json"),
        ({"json": False}, "application/json"),
        ({"body": "hello"}, "text/plain; charset=utf-8"),
        ({"body": "{not json"}, "text/plain; charset=utf-8"),
        ({"body": "{{run_id}} {{attempt}}"}, "text/plain; charset=utf-8"),
        ({"body": "42"}, "text/plain; charset=utf-8"),
        ({"body": ""}, None),
        ({"body": '{"a": 1}', "headers": {"content-type": "text/x"}}, "text/x"),
        ({"json": {}, "headers": {"Content-Type": "application/cloudevents+json"}}, "application/cloudevents+json"),
    ],
)
async def test_content_type_is_the_jobs_or_inferred(
    target: HttpTarget, sink: Sink, config: dict[str, Any], content_type: str | None
) -> None:
    assert (await sent(target, sink, config)).header("content-type") == content_type


async def test_a_body_made_of_the_input_gets_the_type_of_what_it_became(target: HttpTarget, sink: Sink) -> None:
    as_json = await sent(target, sink, {"body": "{{input}}"}, input={"a": 1})
    assert (as_json.body, as_json.header("content-type")) == (b'{"a":1}', "application/json")
    as_text = await sent(target, sink, {"body": "{{input}}"}, input="hi")
    assert (as_text.body, as_text.header("content-type")) == (b"hi", "text/plain; charset=utf-8")


async def test_markers_are_filled_in_url_headers_and_body(target: HttpTarget, sink: Sink) -> None:
    request = await sent(
        target,
        sink,
        {
            "url": f"{sink.url}/runs/{{{{run_id}}}}/{{{{input.who}}}}?at={{{{scheduled_at}}}}",
            "headers": {"X-Who": "{{input.who}}"},
            "json": {"who": "{{input.who}}", "order": "{{input.order}}", "text": "no. {{attempt}}"},
        },
        input={"who": "a/b &c", "order": {"id": 5}},
    )
    assert request.target == "/runs/42/a%2Fb%20%26c?at=2026-03-01T08%3A00%3A00Z"
    assert request.header("x-who") == "a/b &c"
    assert request.json() == {"who": "a/b &c", "order": {"id": 5}, "text": "no. 2"}


async def test_markers_in_a_form_are_escaped_for_it(target: HttpTarget, sink: Sink) -> None:
    config = {"body": "who={{input}}", "headers": {"Content-Type": "application/x-www-form-urlencoded"}}
    assert (await sent(target, sink, config, input="a&b")).body == b"who=a%26b"


async def test_the_service_fills_the_fields_left_to_it(target: HttpTarget, sink: Sink) -> None:
    body = '{\n  "event": "order.received",\n  "job_id": "<filled-by-service>",\n  "run_id": "<filled-by-service>"\n}'
    request = await sent(target, sink, {"body": body})
    assert request.json() == {"event": "order.received", "job_id": "job-7", "run_id": "42"}


@pytest.mark.parametrize("value", ["a\r\nX-Evil: 1", "a\nb", "a\0b"])
async def test_an_input_cannot_break_out_of_a_header(target: HttpTarget, sink: Sink, value: str) -> None:
    config = {"url": sink.url, "headers": {"X-Who": "{{input}}"}}
    outcome = await target.execute(attempt(input=value), config)
    assert outcome.verdict is Verdict.FAIL
    assert "target.headers.X-Who" in outcome.error
    assert sink.count == 0


async def test_an_input_cannot_make_a_url_unreadable(target: HttpTarget, sink: Sink) -> None:
    outcome = await target.execute(attempt(input="a/b"), {"url": "http://{{input}}.example.com/"})
    assert outcome.verdict is Verdict.FAIL
    assert "target.url, filled in as 'http://a%2Fb.example.com/'" in outcome.error


async def test_an_input_that_is_no_json_fails_and_says_why(target: HttpTarget) -> None:
    outcome = await target.execute(attempt(input=object()), {"url": "http://127.0.0.1:9/", "body": "{{input}}"})
    assert outcome.verdict is Verdict.FAIL
    assert outcome.error.startswith("not called: ")


async def test_a_value_of_the_attempt_cannot_break_out_of_its_header(target: HttpTarget, sink: Sink) -> None:
    outcome = await target.execute(attempt(job_ref="a\r\nX-Evil: 1"), {"url": sink.url})
    assert outcome.verdict is Verdict.FAIL
    assert sink.accepted == 0


async def test_a_config_that_cannot_be_read_fails_and_says_why(target: HttpTarget) -> None:
    bad: list[dict[str, Any]] = [{}, {"url": "nonsense"}, {"url": ["x"]}, {"url": "http://a/", "headers": [1]}]
    for config in bad:
        outcome = await target.execute(attempt(), config)
        assert outcome.verdict is Verdict.FAIL
        assert "target." in outcome.error


async def test_a_jobs_own_headers_win_but_for_run_id_and_fence(target: HttpTarget, sink: Sink) -> None:
    own = {
        "x-ksana-run-id": "mine",
        "X-Run-Id": "mine",
        "X-Ksana-Fence": "mine",
        "idempotency-key": "mine",
        "Traceparent": "mine",
        "user-agent": "mine",
        "Accept": "mine",
        "accept-encoding": "gzip",
        "Host": "mine.example",
    }
    request = await sent(target, sink, {"headers": own})
    names = [name.lower() for name, _ in request.headers]
    assert len(names) == len(set(names))
    mine = {name for name in names if request.header(name) == "mine"}
    assert mine == {"idempotency-key", "traceparent", "user-agent", "accept"}
    assert request.header("x-run-id") == request.header("x-ksana-run-id") == "42"
    assert request.header("host") == "mine.example"


async def test_global_headers_go_with_every_call_and_the_jobs_own_win(make_target: MakeTarget, sink: Sink) -> None:
    target = make_target(global_headers={"X-Site": "berlin", "X-Tenant": "all", "user-agent": "us"})
    request = await sent(target, sink, {"headers": {"x-tenant": "{{input}}"}}, input="one")
    assert (request.header("x-site"), request.header("x-tenant")) == ("berlin", "one")
    assert [value for name, value in request.headers if name.lower() == "user-agent"] == ["us"]


async def test_the_input_may_replace_the_body(target: HttpTarget, sink: Sink) -> None:
    given: dict[str, Any] = {"body": '{"other": "{{run_id}}"}'}
    request = await sent(target, sink, {"json": {"a": 1}}, input=given)
    assert request.body == b'{"other": "42"}'
    request = await sent(target, sink, {"body": "x"}, input={"body": {"n": "{{attempt}}"}})
    assert request.json() == {"n": "2"}


async def test_an_async_call_says_where_to_call_back(target: HttpTarget, sink: Sink) -> None:
    context = attempt()
    sink.otherwise(Reply(202, b"accepted"))
    outcome = await target.execute(context, {"url": sink.url, "mode": "async"})
    assert (outcome.verdict, outcome.code) == (Verdict.WAIT, 202)
    (request,) = sink.requests
    assert request.header("x-callback-url") == context.callback_url
    assert request.header("x-callback-token") == "tok"
    assert request.json() == {"callback_url": context.callback_url, "callback_token": "tok"}
    assert request.header("content-type") == "application/json"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ('{"a": 1.50 }\n', '{"a": 1.50 ,"callback_url":"{url}","callback_token":"tok"}'),
        ("{ }", '{ "callback_url":"{url}","callback_token":"tok"}'),
        ('{"callback_token": "own"}', '{"callback_token": "own","callback_url":"{url}"}'),
        ('{"u": "{{callback_url}}"}', '{"u": "{url}","callback_url":"{url}","callback_token":"tok"}'),
        ('{"callback_url": 1, "callback_token": 2}', '{"callback_url": 1, "callback_token": 2}'),
        ("[1]", "[1]"),
        ("text", "text"),
        ("{broken", "{broken"),
    ],
)
async def test_a_json_object_gets_the_callback_keys_it_lacks(
    target: HttpTarget, sink: Sink, body: str, expected: str
) -> None:
    request = await sent(target, sink, {"body": body, "mode": "async"})
    assert request.body.decode() == expected.replace("{url}", attempt().callback_url)


async def test_an_async_get_has_them_as_parameters(target: HttpTarget, sink: Sink) -> None:
    config = {"method": "GET", "url": f"{sink.url}/x?a=1&callback_token=own", "mode": "async"}
    request = await sent(target, sink, config)
    assert parse_qs(request.query) == {
        "a": ["1"],
        "callback_token": ["own"],
        "callback_url": [attempt().callback_url],
    }
    assert request.body == b""


@pytest.mark.parametrize("query", ["", "?to={{callback_url}}", "?key={{callback_token}}"])
async def test_what_is_told_of_a_request_never_holds_its_callback_token(
    target: HttpTarget, sink: Sink, query: str
) -> None:
    token = "0123456789abcdef" * 2
    context = attempt(callback_url=f"http://ksana.test/cb/{token}", callback_token=token)
    sink.otherwise(Reply(503))
    outcome = await target.execute(context, {"method": "GET", "url": f"{sink.url}/x{query}", "mode": "async"})
    assert token in sink.requests[0].query
    line = exchange_of(outcome).request_line
    assert (line in outcome.error, token in outcome.error, token in line) == (True, False, False)


async def test_the_input_may_ask_for_a_callback(target: HttpTarget, sink: Sink) -> None:
    outcome = await target.execute(attempt(input={"mode": "async"}), {"url": sink.url})
    assert outcome.verdict is Verdict.WAIT
    assert sink.requests[0].header("x-callback-token") == "tok"


async def test_a_sync_call_tells_nothing_of_callbacks(target: HttpTarget, sink: Sink) -> None:
    request = await sent(target, sink, {"body": "{}"})
    assert request.header("x-callback-token") is None
    assert request.body == b"{}"


async def test_credentials_in_the_url_are_sent_as_basic_auth_and_never_shown(target: HttpTarget, sink: Sink) -> None:
    url = sink.url.replace("://", "://user:p%40ss@") + "/x"
    outcome = await target.execute(attempt(), {"url": url})
    assert sink.requests[0].header("authorization") == "Basic " + b64encode(b"user:p@ss").decode()
    exchange = exchange_of(outcome)
    assert exchange.request_line == f"POST http://***@127.0.0.1:{sink.port}/x"
    assert exchange.request_headers["Authorization"] == "***"


async def test_a_jobs_own_authorization_wins_over_the_urls(target: HttpTarget, sink: Sink) -> None:
    url = sink.url.replace("://", "://user:pw@")
    request = await sent(target, sink, {"url": url, "headers": {"authorization": "Bearer x"}})
    assert [v for n, v in request.headers if n.lower() == "authorization"] == ["Bearer x"]


async def test_secrets_are_kept_out_of_what_is_recorded(make_target: MakeTarget, sink: Sink) -> None:
    target = make_target(redact=["X-Pass"], global_headers={"Cookie": "a=1"})
    answer = Reply(200, b"ok", {"Set-Cookie": "s=1", "X-Pass": "p", "X-Open": "o"})
    config = {
        "url": sink.on("/x", answer),
        "headers": {"authorization": "Bearer x", "X-API-Key": "k", "x-pass": "{{input}}", "X-Open": "o"},
    }
    exchange = exchange_of(await target.execute(attempt(input="hidden"), config))
    request = sink.requests[0]
    assert [request.header(n) for n in ("authorization", "x-api-key", "cookie", "x-pass")] == [
        "Bearer x",
        "k",
        "a=1",
        "hidden",
    ]
    assert {n for n, v in exchange.request_headers.items() if v == "***"} == {
        "authorization",
        "X-API-Key",
        "Cookie",
        "x-pass",
    }
    assert exchange.response_headers["set-cookie"] == exchange.response_headers["x-pass"] == "***"
    assert exchange.response_headers["x-open"] == exchange.request_headers["X-Open"] == "o"


async def test_request_and_answer_are_kept_whole(target: HttpTarget, sink: Sink) -> None:
    config = {"url": sink.on("/x", Reply(201, b'{"id": 9}', {"X-B": "2"})), "body": "hello"}
    outcome = await target.execute(attempt(), config)
    exchange = exchange_of(outcome)
    assert exchange.request_line == f"POST {sink.url}/x"
    assert {n.lower(): v for n, v in exchange.request_headers.items()}.items() <= {
        n.lower(): v for n, v in sink.requests[0].headers
    }.items()
    assert exchange.request_body == b"hello"
    assert exchange.response_code == 201
    assert exchange.response_headers == {"x-b": "2", "content-length": "9"}
    assert exchange.response_body == b'{"id": 9}'
    assert not exchange.truncated
    assert outcome == Outcome(Verdict.SUCCESS, code=201, result=b'{"id": 9}', exchange=exchange)


async def test_a_secret_signs_every_call(make_target: MakeTarget, sink: Sink) -> None:
    target = make_target(signing_secret=b"s3cret")
    request = await sent(target, sink, {"body": "hello", "headers": {"Webhook-Signature": "forged"}})
    timestamp = str(int(NOW.timestamp()))
    assert request.header("webhook-id") == "42"
    assert request.header("webhook-timestamp") == timestamp
    expected = hmac.digest(b"s3cret", f"42.{timestamp}.hello".encode(), "sha256")
    assert [v for n, v in request.headers if n.lower() == "webhook-signature"] == ["v1," + b64encode(expected).decode()]


async def test_an_environment_proxy_is_not_used(
    target: HttpTarget, sink: Sink, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    await sent(target, sink, {})


async def test_no_cookies_are_remembered(target: HttpTarget, sink: Sink) -> None:
    sink.otherwise(Reply(200, b"", {"Set-Cookie": "s=1; Path=/"}))
    await sent(target, sink, {})
    assert (await sent(target, sink, {})).header("cookie") is None


async def test_a_compressed_answer_is_kept_as_it_came(target: HttpTarget, sink: Sink) -> None:
    bomb = b"\x1f\x8b\x08" + b"\x00" * 20
    config = {"url": sink.on("/z", Reply(200, bomb, {"Content-Encoding": "gzip"}))}
    assert exchange_of(await target.execute(attempt(), config)).response_body == bomb
