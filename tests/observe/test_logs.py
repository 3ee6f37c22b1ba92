"""How log lines look."""

import io
import json
import logging
import sys
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest

from ksana.domain.errors import InvalidArgument
from ksana.observe.logs import JsonFormatter, TextFormatter, level_of, setup_logging
from ksana.observe.redaction import Redactor
from tests.observe.builders import NOON


@pytest.fixture
def logging_restored() -> Iterator[None]:
    root, ours = logging.getLogger(), logging.getLogger("ksana")
    before = root.level, ours.level, list(root.handlers)
    yield
    root.setLevel(before[0])
    ours.setLevel(before[1])
    root.handlers[:] = before[2]


def record(message: str = "hello", name: str = "ksana.engine.runner", **extra: Any) -> logging.LogRecord:
    made = logging.makeLogRecord({"name": name, "levelname": "INFO", "levelno": logging.INFO, "msg": message, **extra})
    made.created = (NOON + timedelta(milliseconds=5)).timestamp()
    return made


def as_json(made: logging.LogRecord, request_id: Callable[[], str] | None = None) -> dict[str, Any]:
    line = JsonFormatter(Redactor(), request_id).format(made)
    assert "\n" not in line
    decoded: dict[str, Any] = json.loads(line)
    return decoded


def as_text(made: logging.LogRecord, *, color: bool = False) -> str:
    return TextFormatter(Redactor(), color=color).format(made)


def failure() -> Any:
    try:
        raise RuntimeError("no luck with Bearer abcdefgh")
    except RuntimeError:
        return sys.exc_info()


def test_a_json_line_has_time_level_message_and_component() -> None:
    assert as_json(record()) == {
        "ts": "2026-03-01T12:00:00.005Z",
        "time": "2026-03-01T12:00:00.005Z",
        "level": "INFO",
        "msg": "hello",
        "component": "engine",
    }


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ({"error": "boom"}, {"error": "boom", "err": "boom"}),
        ({"err": "boom"}, {"error": "boom", "err": "boom"}),
        ({"job_name": "nightly"}, {"job_name": "nightly", "name": "nightly"}),
        ({"job_id": 7}, {"job_id": 7, "task_id": 7}),
        ({"component": "api"}, {"component": "api"}),
    ],
)
def test_fields_appear_under_each_of_their_names(given: dict[str, Any], shown: dict[str, Any]) -> None:
    assert shown.items() <= as_json(record(fields=given)).items()


def test_extras_of_any_logger_become_fields_and_cannot_replace_the_head() -> None:
    line = as_json(record(name="uvicorn.error", status=200, fields={"level": "FAKE", "at": NOON}))
    assert (line["component"], line["status"], line["level"]) == ("uvicorn", 200, "INFO")
    assert line["at"] == "2026-03-01T12:00:00Z"


def test_the_request_being_answered_is_named() -> None:
    assert as_json(record(), lambda: "abc")["request_id"] == "abc"
    assert "request_id" not in as_json(record(), lambda: "")


def test_an_exception_is_one_field_of_one_line_without_its_secrets() -> None:
    line = as_json(record(exc_info=failure()))
    assert line["error"] == line["err"] == "RuntimeError: no luck with Bearer ***"
    assert line["exception"].startswith("Traceback") and "abcdefgh" not in line["exception"]


def test_a_line_that_cannot_be_encoded_well_is_still_written() -> None:
    line = as_json(record("half \ud800 a pair", fields={1: object(), "b": {2: 3}, "big": 2**70}))
    assert line["msg"] == "half \ud800 a pair"


def test_text_is_one_short_line_with_zone_and_each_thing_once() -> None:
    fields = {"run_id": 41, "job_id": 7, "job_name": "my job", "trace_id": "f" * 32, "planned": NOON}
    assert as_text(record("run succeeded", fields=fields)) == (
        "2026-03-01T12:00:00.005Z INFO    engine    run succeeded"
        ' run_id=41 job_id=7 job_name="my job" planned=2026-03-01T12:00:00.000Z'
    )


def test_text_from_outside_cannot_forge_a_line_or_move_the_cursor() -> None:
    line = as_text(record("bad\n2026 ERROR \x1b[2J", fields={"error": "x\ny\x1b[0m"}))
    assert "\n" not in line and "\x1b" not in line


def test_text_shows_a_traceback_below_the_line() -> None:
    first, *rest = as_text(record(exc_info=failure())).splitlines()
    assert first.endswith('error="RuntimeError: no luck with Bearer ***"')
    assert rest[0].startswith("Traceback") and rest[-1].endswith("Bearer ***")


def test_levels_are_coloured_only_when_asked() -> None:
    assert "\x1b[32mINFO" in as_text(record(), color=True)
    assert "\x1b" not in as_text(record())


@pytest.mark.parametrize(
    ("format", "is_tty", "begins"),
    [("auto", False, "{"), ("auto", True, "20"), ("json", True, "{"), ("TEXT", False, "20")],
)
@pytest.mark.usefixtures("logging_restored")
def test_auto_is_text_on_a_terminal_and_json_elsewhere(format: str, is_tty: bool, begins: str) -> None:
    stream = io.StringIO()
    setup_logging("info", format, stream, is_tty)
    logging.getLogger("ksana.api").info("hello")
    assert stream.getvalue().startswith(begins)


@pytest.mark.parametrize(
    ("is_tty", "no_color", "is_coloured"), [(True, False, True), (True, True, False), (False, False, False)]
)
@pytest.mark.usefixtures("logging_restored")
def test_colour_is_for_terminals_that_want_it(is_tty: bool, no_color: bool, is_coloured: bool) -> None:
    stream = io.StringIO()
    setup_logging("info", "text", stream, is_tty, no_color=no_color)
    logging.getLogger("ksana.api").info("hello")
    assert ("\x1b" in stream.getvalue()) is is_coloured


@pytest.mark.usefixtures("logging_restored")
def test_a_second_setup_replaces_the_first() -> None:
    first, second = io.StringIO(), io.StringIO()
    setup_logging("info", "json", first, False)
    setup_logging("debug", "json", second, False, secrets=["open-sesame"], request_id=lambda: "r1")
    logging.getLogger("ksana.api").debug("said open-sesame")
    assert first.getvalue() == ""
    line = json.loads(second.getvalue())
    assert (line["msg"], line["level"], line["request_id"]) == ("said ***", "DEBUG", "r1")


@pytest.mark.usefixtures("logging_restored")
def test_libraries_are_heard_from_warning_on() -> None:
    stream = io.StringIO()
    setup_logging("debug", "json", stream, False)
    logging.getLogger("asyncpg").info("chatter")
    logging.getLogger("asyncpg").warning("trouble")
    assert [json.loads(line)["msg"] for line in stream.getvalue().splitlines()] == ["trouble"]


@pytest.mark.parametrize(
    ("name", "level"),
    [("info", logging.INFO), ("WARN", logging.WARNING), ("Warning", logging.WARNING), (" error ", logging.ERROR)],
)
def test_levels_are_named_in_any_case(name: str, level: int) -> None:
    assert level_of(name) == level


@pytest.mark.usefixtures("logging_restored")
def test_an_unknown_level_or_format_is_refused_with_the_choices() -> None:
    with pytest.raises(InvalidArgument, match="choose one of debug, info"):
        setup_logging("loud", "json", io.StringIO(), False)
    with pytest.raises(InvalidArgument, match="choose one of auto, json, text"):
        setup_logging("info", "xml", io.StringIO(), False)
