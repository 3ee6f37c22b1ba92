"""What must never reach a log."""

import json

import pytest

from ksana.observe.redaction import Redactor

_KEY = "ksk_0123456789abcdef_" + "ab" * 32
_TOKEN = "0123456789abcdef0123456789abcdef"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (f"key {_KEY} was refused", "key ksk_0123456789abcdef_*** was refused"),
        ("key ksk_oddlyshaped was refused", "key ksk_*** was refused"),
        ("Authorization: Bearer abc.def-ghi", "Authorization: Bearer ***"),
        ("authorization: Basic dXNlcjpwYXNz", "authorization: Basic ***"),
        ("{'Authorization': 'Bearer abc'}", "{'Authorization': 'Bearer ***'}"),
        ("[(b'authorization', b'Bearer abc')]", "[(b'authorization', b'Bearer ***')]"),
        ("sent bearer abcdefgh to the target", "sent bearer *** to the target"),
        ("Set-Cookie: sid=1; theme=2", "Set-Cookie: ***"),
        ("postgres://ksana:hunter2@db:5432/x", "postgres://ksana:***@db:5432/x"),
        ("redis://:hunter2@cache/0", "redis://:***@cache/0"),
        ("https://a:p@ss@example.com/x?y=1", "https://a:***@example.com/x?y=1"),
        (f"POST /api/v1/callbacks/{_TOKEN} 200", "POST /api/v1/callbacks/*** 200"),
        (f"GET /x?to=http%3A%2F%2Fk%2Fcallbacks%2F{_TOKEN}&a=1", "GET /x?to=http%3A%2F%2Fk%2Fcallbacks%2F***&a=1"),
        (f"X-Callback-Token: {_TOKEN}", "X-Callback-Token: ***"),
        (f"{{'callback_token': '{_TOKEN}'}}", "{'callback_token': '***'}"),
        ("https://example.com/x?token=abc&page=2", "https://example.com/x?token=***&page=2"),
        ("password=hunter2 host=db", "password=*** host=db"),
    ],
)
def test_a_secret_is_masked_and_what_is_around_it_stays(text: str, shown: str) -> None:
    assert Redactor()(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        "run succeeded",
        "https://example.com/a:b/c@d",
        "token: expected text, got int",
        "GET https://example.com:8080/hook answered 500",
        "/api/v1/callbacks/short",
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    assert Redactor()(text) == text


def test_known_secrets_are_masked_wherever_they_turn_up() -> None:
    redact = Redactor(['sesame"open', "tiny"])
    line = json.dumps({"msg": 'they said sesame"open', "size": "tiny"})
    assert json.loads(redact(line)) == {"msg": "they said ***", "size": "tiny"}


def test_masking_leaves_json_valid_however_deep_the_quoting() -> None:
    inner = json.dumps({"Authorization": "Bearer abc", "password": "x y"})
    line = json.dumps({"msg": json.dumps({"headers": inner})})
    masked = Redactor()(line)
    assert json.loads(json.loads(json.loads(masked)["msg"])["headers"]) == {
        "Authorization": "Bearer ***",
        "password": "***",
    }
