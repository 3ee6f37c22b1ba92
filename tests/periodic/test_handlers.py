"""Handlers written down in code: what the decorator takes, refuses and leaves alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ksana import Item, Ksana
from ksana.domain.errors import AlreadyExists, InvalidArgument


def handled(app: Ksana) -> list[tuple[str, str | None, int]]:
    return [(handler.queue, handler.type, handler.concurrency) for handler in app.handlers]


def test_a_name_is_that_of_an_action_or_of_a_queue_or_of_a_type_in_one() -> None:
    app = Ksana()

    @app.handler("cognition.revalidate", concurrency=8)
    async def revalidate(item: Item) -> None: ...

    @app.handler("emails")
    def mail(item: Item) -> str:
        return f"to {item.payload}"

    app.handler("welcome", queue="emails")(mail)
    app.handler("memory.verify", queue="urgent")(revalidate)
    app.handler("sms", queue="sms")(mail)
    assert handled(app) == [
        ("governance", "cognition.revalidate", 8),
        ("emails", None, 4),
        ("emails", "welcome", 4),
        ("urgent", "memory.verify", 4),
        ("sms", None, 4),
    ]
    assert app.handlers[1].function is mail
    assert app.definitions == {}


def no_item() -> None: ...
def named_only(*, item: Item) -> None: ...
def fine(item: Item) -> None: ...


@pytest.mark.parametrize(
    ("words", "function", "fields"),
    [
        ({"name": "no spaces"}, fine, ["queue"]),
        ({"name": ""}, fine, ["queue"]),
        ({"name": "a b", "queue": "mail"}, fine, ["name"]),
        ({"name": "mail", "concurrency": 0}, fine, ["concurrency"]),
        ({"name": "mail", "concurrency": True}, fine, ["concurrency"]),
        ({"name": "mail"}, no_item, ["function"]),
        ({"name": "mail"}, named_only, ["function"]),
        ({"name": "mail", "queue": "a b", "concurrency": 1001}, no_item, ["queue", "concurrency", "function"]),
    ],
)
def test_what_cannot_work_is_refused_at_its_line(
    words: dict[str, Any], function: Callable[..., Any], fields: list[str]
) -> None:
    with pytest.raises(InvalidArgument) as refused:
        Ksana().handler(**words)(function)
    assert [problem.field for problem in refused.value.problems] == fields


def test_two_handlers_cannot_have_the_same_items() -> None:
    app, other = Ksana(), Ksana()
    app.handler("mail")(fine)
    with pytest.raises(AlreadyExists, match="'mail'"):
        app.handler("mail")(fine)
    other.handler("welcome", queue="mail")(fine)
    app.include(other)
    assert [handler.type for handler in app.handlers] == [None, "welcome"]
    other.handler("mail")(fine)
    with pytest.raises(AlreadyExists, match="leave one of them out"):
        _ = app.handlers
