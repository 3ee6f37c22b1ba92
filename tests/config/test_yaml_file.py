"""The configuration file: read as written, strict about names."""

from datetime import timedelta

import pytest

from ksana.config.model import LogLevel
from tests.config.loading import Place

CRONJOB_FILE = """\
server:
  port: 8080
  graceful_timeout: 10s
mysql:
  dsn: "user:pass@tcp(127.0.0.1:3306)/cronjob?charset=utf8mb4&parseTime=True&loc=Local"
  max_open_conns: 50
  max_idle_conns: 10
  conn_max_lifetime: 300s
scheduler:
  poll_interval: 1s        # 秒级支持：缩短扫描周期（可调）
  ahead_seconds: 30         # 窗口不宜过长，减少秒级误差
  batch_limit: 200
  enable_seconds_field: true
executor:
  worker_pool_size: 16
  request_timeout: 15s
  default_retry:
    max_retries: 0
callback:
  base_url: "http://cronjob.internal/api/v1/callbacks"
  token_ttl: 3600s
metrics:
  enabled: true
logging:
  level: info
"""


def test_a_cronjob_file_is_honoured_unchanged(place: Place) -> None:
    settings = place.load(config=place.file(CRONJOB_FILE, "config.yaml"))
    assert settings.warnings == ()
    assert settings.server.port == 8080
    assert settings.server.graceful_timeout == timedelta(seconds=10)
    assert settings.storage.url == "mysql://user:pass@127.0.0.1:3306/cronjob?charset=utf8mb4"
    assert settings.storage.pool_size == 50
    assert settings.storage.pool_idle == 10
    assert settings.storage.pool_lifetime == timedelta(seconds=300)
    assert settings.scheduler.poll_interval == timedelta(seconds=1)
    assert settings.scheduler.ahead == timedelta(seconds=30)
    assert settings.scheduler.batch_limit == 200
    assert settings.scheduler.enable_seconds_field is True
    assert settings.executor.worker_pool_size == 16
    assert settings.executor.request_timeout == timedelta(seconds=15)
    assert settings.executor.default_retry.max_retries == 0
    assert settings.callback.base_url == "http://cronjob.internal/api/v1/callbacks"
    assert settings.callback.token_ttl == timedelta(hours=1)
    assert settings.metrics.enabled is True
    assert settings.logging.level is LogLevel.INFO
    assert settings.sources["storage.url"].endswith("config.yaml:5 (mysql.dsn)")


@pytest.mark.parametrize(
    ("text", "field", "line", "suggestion"),
    [
        ("server:\n  prot: 1\n", "server.prot", 2, "server.port"),
        ("sever:\n  port: 1\n", "sever", 1, "server"),
        ("port: 1\n", "port", 1, "server.port"),
        (
            "executor:\n  default_retry:\n    max_retrys: 1\n",
            "executor.default_retry.max_retrys",
            3,
            "max_retries",
        ),
        ("server:\n  worker_pool_size: 1\n", "server.worker_pool_size", 2, "executor.worker_pool_size"),
        ("mysql:\n  max_open_con: 1\n", "mysql.max_open_con", 2, "mysql.max_open_conns"),
        ("executor:\n  body_log_max: 1\n", "executor.body_log_max", 2, ""),
    ],
)
def test_an_unknown_key_is_named_with_a_suggestion(
    place: Place, text: str, field: str, line: int, suggestion: str
) -> None:
    path = place.file(text)
    problem = place.problem()
    assert problem.field == field
    assert f"(in {path}:{line})" in problem.message
    assert suggestion in problem.message
    assert ("did you mean" in problem.message) is bool(suggestion)


@pytest.mark.parametrize("word", ["yes", "on", "true", "True", "1", '"on"'])
def test_every_common_word_for_true_is_read(place: Place, word: str) -> None:
    place.file(f"server:\n  insecure: {word}\n")
    assert place.load().server.insecure is True


@pytest.mark.parametrize("word", ["no", "off", "false", "FALSE", "0"])
def test_every_common_word_for_false_is_read(place: Place, word: str) -> None:
    place.file(f"metrics:\n  enabled: {word}\n")
    assert place.load().metrics.enabled is False


@pytest.mark.parametrize("word", ["off", "no", "1:30", "0x10", "010_0", "1e3", "2026-01-01", "1.5", "٣"])
def test_yaml_never_turns_a_word_into_a_number(place: Place, word: str) -> None:
    place.file(f"server:\n  port: {word}\n")
    problem = place.problem()
    assert problem.field == "server.port"
    assert repr(word) in problem.message


def test_a_host_called_no_stays_a_host(place: Place) -> None:
    place.file("server:\n  host: no\n")
    assert place.load().server.host == "no"


def test_empty_files_sections_and_values_set_nothing(place: Place) -> None:
    for text in ("", "# nothing\n", "server:\n", "server:\n  port:\n  host: ~\nlogging: {}\n"):
        place.file(text)
        assert place.load().sources == {}


def test_lists_and_maps_are_read(place: Place) -> None:
    place.file(
        "server: {allowed_hosts: [a.example, b.example]}\n"
        "executor:\n  allow_net: [10.0.0.0/8]\n  global_headers:\n    X-Team: ops\n    X-Env: off\n"
    )
    settings = place.load()
    assert settings.server.allowed_hosts == ("a.example", "b.example")
    assert settings.executor.allow_net == ("10.0.0.0/8",)
    assert settings.executor.global_headers == {"X-Team": "ops", "X-Env": "off"}


def test_a_key_given_twice_is_refused(place: Place) -> None:
    path = place.file("server:\n  port: 1\n  port: 2\nserver:\n  host: localhost\n")
    problems = place.problems()
    assert [problem.field for problem in problems] == ["server", "server.port"]
    assert problems[1].message == f"is given twice; keep one (in {path}:3)"


def test_a_header_given_twice_is_refused(place: Place) -> None:
    place.file("executor:\n  global_headers:\n    X-A: 1\n    X-A: 2\n")
    assert place.problem().field == "executor.global_headers.X-A"


def test_two_keys_for_one_setting_must_agree(place: Place) -> None:
    place.file("storage:\n  pool_size: 1\nmysql:\n  max_open_conns: 2\n")
    problem = place.problem()
    assert problem.field == "mysql.max_open_conns"
    assert "storage.pool_size" in problem.message


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("server: 5\n", "server"),
        ("server: [a]\n", "server"),
        ("server:\n  port: [1, 2]\n", "server.port"),
        ("server:\n  port: {a: 1}\n", "server.port"),
        ("executor:\n  allow_net: {a: b}\n", "executor.allow_net"),
        ("executor:\n  allow_net: [[a]]\n", "executor.allow_net"),
        ("executor:\n  global_headers: {a: {b: c}}\n", "executor.global_headers"),
        ("executor: &again\n  global_headers: *again\n", "executor.global_headers"),
        ("server: &again\n  again: *again\n", "server.again"),
        ("server:\n  [1]: 2\n", "server"),
        ("logging:\n  level: !!python/name:os.system ''\n", "logging.level"),
        ("logging:\n  level: !mine info\n", "logging.level"),
    ],
)
def test_a_value_of_the_wrong_shape_is_named(place: Place, text: str, field: str) -> None:
    place.file(text)
    assert place.problem().field == field


@pytest.mark.parametrize("text", ["a: [", "a: b: c", "\tport: 1", "a: 1\n---\nb: 2\n", "a: \x07", "- a\n"])
def test_a_file_that_cannot_be_understood_is_named(place: Place, text: str) -> None:
    path = place.file(text)
    assert place.problem().field == str(path)


def test_a_file_that_is_not_utf_8_is_named(place: Place) -> None:
    path = place.file("")
    path.write_bytes(b"server:\n  host: \xff\xfe\n")
    assert place.problem() == (str(path), "is not UTF-8 text")


def test_a_byte_order_mark_is_harmless(place: Place) -> None:
    place.file("\ufeffserver:\n  port: 5\n")
    assert place.load().server.port == 5
