"""Which source wins, what is derived, and what is refused."""

from datetime import timedelta
from pathlib import Path

import pytest

from ksana.config import environment, settings_report
from ksana.config.field import Field
from ksana.config.fields import FIELDS
from ksana.config.model import LogLevel, RecoveryRule
from ksana.domain.policies import RetryStrategy
from tests.config.loading import Place

PORT_IN_FILE = "server:\n  port: 4\n"
LONG_KEY = f"ksk_{'1' * 16}_{'a' * 64}"
OTHER_KEY = f"ksk_{'2' * 16}_{'b' * 64}"


def test_nothing_given_means_the_defaults(place: Place) -> None:
    settings = place.load()
    assert (settings.server.host, settings.server.port) == ("127.0.0.1", 7100)
    assert settings.executor.default_retry.max_retries is None
    assert settings.storage.url == f"sqlite:///{place.directory}/data/ksana.db"
    assert settings.sources == {}
    assert settings.warnings == ()


def test_a_flag_wins_over_everything(place: Place) -> None:
    place.file(PORT_IN_FILE)
    settings = place.load(flags={"port": 1}, KSANA_PORT="2", PORT="2")
    assert settings.server.port == 1
    assert settings.sources["server.port"] == "flag --port"


def test_a_flag_may_go_by_its_dotted_key(place: Place) -> None:
    assert place.load(flags={"scheduler.batch_limit": 7}).scheduler.batch_limit == 7


def test_a_flag_that_is_none_was_not_given(place: Place) -> None:
    assert place.load(flags={"port": None}, PORT="3").server.port == 3


def test_a_prefixed_variable_wins_over_the_bare_one_and_says_so(place: Place) -> None:
    settings = place.load(KSANA_PORT="2", PORT="3")
    assert settings.server.port == 2
    assert settings.warnings == ("KSANA_PORT and PORT are both set and differ; KSANA_PORT wins, unset PORT",)


def test_two_names_that_agree_are_no_cause_to_warn(place: Place) -> None:
    assert place.load(KSANA_PORT="2", PORT="2").warnings == ()


def test_a_bare_variable_wins_over_the_file(place: Place) -> None:
    place.file(PORT_IN_FILE)
    settings = place.load(PORT="3")
    assert settings.server.port == 3
    assert settings.sources["server.port"] == "environment PORT"


def test_a_file_wins_over_the_default_and_names_its_line(place: Place) -> None:
    path = place.file(PORT_IN_FILE)
    settings = place.load()
    assert settings.server.port == 4
    assert settings.sources["server.port"] == f"{path}:2"


def test_an_empty_variable_is_not_set(place: Place) -> None:
    place.file(PORT_IN_FILE)
    assert place.load(PORT="", KSANA_PORT=" ").server.port == 4


def test_a_named_file_wins_over_the_one_at_hand_and_that_over_the_systems(place: Place) -> None:
    place.file("server:\n  port: 3\n", "etc/ksana.yaml")
    assert place.load().server.port == 3
    place.file("server:\n  port: 2\n")
    assert place.load().server.port == 2
    place.file("server:\n  port: 1\n", "mine.yaml")
    assert place.load(KSANA_CONFIG="mine.yaml").server.port == 1
    assert place.load(config=Path("ksana.yaml"), KSANA_CONFIG="mine.yaml").server.port == 2


def test_a_named_file_that_is_missing_is_an_error(place: Place) -> None:
    problem = place.problem(KSANA_CONFIG="gone.yaml")
    assert problem.field.endswith("gone.yaml")
    assert "cannot be read" in problem.message


def test_ksana_data_wins_over_data_dir(place: Place) -> None:
    settings = place.load(KSANA_DATA="a", DATA_DIR="b")
    assert settings.storage.dir == place.directory / "a"
    assert settings.storage.url == f"sqlite:///{place.directory}/a/ksana.db"
    assert settings.sources["storage.url"] == "derived from storage.dir"
    assert "KSANA_DATA wins" in settings.warnings[0]


def test_every_bare_name_is_honoured(place: Place) -> None:
    settings = place.load(
        PORT="1",
        HOST="localhost",
        DATA_DIR="/srv/k",
        DATABASE_URL="postgres://u:p@db/k",
        WORKERS="9",
        DEFAULT_TIMEOUT="30s",
        MAX_RETRIES="5",
        RETRY_BACKOFF="1m30s",
        LOG_LEVEL="WARN",
    )
    assert (settings.server.port, settings.server.host) == (1, "localhost")
    assert settings.storage.dir == Path("/srv/k")
    assert settings.storage.url == "postgresql://u:p@db/k"
    assert settings.executor.worker_pool_size == 9
    assert settings.executor.request_timeout == timedelta(seconds=30)
    assert settings.executor.default_retry.max_retries == 5
    assert settings.executor.default_retry.initial_delay == timedelta(seconds=90)
    assert settings.logging.level is LogLevel.WARNING
    assert settings.warnings == ()


SAMPLES = {
    "server.host": ("::1", "::1"),
    "server.port": ("0", 0),
    "server.base_path": ("/k/", "/k"),
    "server.public_url": ("https://k.example/", "https://k.example"),
    "server.graceful_timeout": ("0", timedelta()),
    "server.insecure": ("yes", True),
    "server.allowed_hosts": ("a.example, *.b.example", ("a.example", "*.b.example")),
    "storage.dir": ("/srv", Path("/srv")),
    "storage.url": ("json:/srv", "json:/srv"),
    "storage.pool_size": ("3", 3),
    "storage.pool_idle": ("1", 1),
    "storage.pool_lifetime": ("1h", timedelta(hours=1)),
    "storage.retention": ("7d12h", timedelta(days=7, hours=12)),
    "storage.keep_last": ("0", 0),
    "executor.worker_pool_size": ("2", 2),
    "executor.python_threads": ("2", 2),
    "executor.python_importable": ("reports,jobs.daily", ("reports", "jobs.daily")),
    "executor.signing_secret": ("s" * 16, "s" * 16),
    "executor.request_timeout": ("500ms", timedelta(milliseconds=500)),
    "executor.connect_timeout": ("2", timedelta(seconds=2)),
    "executor.default_retry.max_retries": ("0", 0),
    "executor.default_retry.initial_delay": ("2s", timedelta(seconds=2)),
    "executor.default_retry.strategy": ("exponential", RetryStrategy.EXPONENTIAL),
    "executor.default_retry.max_delay": ("2h", timedelta(hours=2)),
    "executor.global_headers": ('{"X-Team": "ops"}', {"X-Team": "ops"}),
    "executor.allow_net": ("10.1.2.3/8,::1,svc.internal", ("10.0.0.0/8", "::1/128", "svc.internal")),
    "executor.max_response_bytes": ("1MiB", 1048576),
    "scheduler.poll_interval": ("250ms", timedelta(milliseconds=250)),
    "scheduler.ahead": ("5", timedelta(seconds=5)),
    "scheduler.batch_limit": ("1", 1),
    "scheduler.enable_seconds_field": ("off", False),
    "scheduler.timezone": ("Asia/Shanghai", "Asia/Shanghai"),
    "scheduler.misfire_threshold": ("1m", timedelta(minutes=1)),
    "scheduler.misfire_grace": ("2s", timedelta(seconds=2)),
    "scheduler.lease": ("30s", timedelta(seconds=30)),
    "scheduler.max_reclaims": ("0", 0),
    "callback.base_url": ("http://k/cb", "http://k/cb"),
    "callback.token_ttl": ("5m", timedelta(minutes=5)),
    "callback.by_ids": ("no", False),
    "recovery.running": ("fail", RecoveryRule.FAIL),
    "alerts.urls": ("https://h/x?k=1,mailto://me:pw@example.com", ("https://h/x?k=1", "mailto://me:pw@example.com")),
    "auth.keys": (f"{LONG_KEY},{OTHER_KEY}", (LONG_KEY, OTHER_KEY)),
    "logging.level": ("debug", LogLevel.DEBUG),
    "logging.format": ("JSON", "json"),
    "metrics.enabled": ("False", False),
}


@pytest.mark.parametrize("field", FIELDS, ids=lambda field: field.key)
def test_every_name_of_every_setting_is_honoured(place: Place, field: Field) -> None:
    text, value = SAMPLES[field.key]
    for name in (*field.env, *field.bare):
        settings = place.load({name: text})
        assert settings.value(field.key) == value
        assert settings.sources[field.key] == f"environment {name}"
    for key in field.keys:
        section, _, last = key.rpartition(".")
        nested = "".join(f"{'  ' * depth}{part}:\n" for depth, part in enumerate(section.split(".")))
        place.file(f"{nested}{'  ' * (section.count('.') + 1)}{last}: {text!r}\n")
        assert place.load().value(field.key) == value


BAD = {
    "server.base_path": "no-slash",
    "executor.global_headers": "[1]",
    "auth.keys": "hunter2",
    "executor.python_importable": "not a module",
    "executor.signing_secret": "short",
    "server.host": "a b",
    "server.allowed_hosts": "a b",
    "executor.allow_net": "10.0.0.300",
    "storage.url": "oracle://sys:hunter2@db/x",
    "alerts.urls": "hunter2",
}


# Any text is a directory.
CAN_BE_BAD = [field for field in FIELDS if field.key != "storage.dir"]


@pytest.mark.parametrize("field", CAN_BE_BAD, ids=lambda field: field.key)
def test_a_bad_value_is_named_with_its_source_and_what_is_allowed(place: Place, field: Field) -> None:
    bad = BAD.get(field.key, "banana")
    problem = place.problem({field.env[0]: bad})
    assert problem.field == field.key
    assert f"environment {field.env[0]}" in problem.message
    assert field.kind.allowed in problem.message
    assert "hunter2" not in problem.message


def test_all_problems_are_reported_at_once(place: Place) -> None:
    place.file("server:\n  prot: 1\nscheduler:\n  poll_interval: banana\n")
    problems = place.problems(flags={"workers": 0, "prt": 1}, KSANA_TZ="Mars/Base", DATABASE_URL="nothing")
    assert {problem.field for problem in problems} == {
        "server.prot",
        "prt",
        "executor.worker_pool_size",
        "scheduler.poll_interval",
        "scheduler.timezone",
        "storage.url",
    }


def test_an_unknown_flag_is_an_error_with_a_suggestion(place: Place) -> None:
    problem = place.problem(flags={"server.prot": 1})
    assert problem == ("server.prot", "is not a setting; did you mean server.port?")


def test_an_unknown_variable_only_warns_with_a_suggestion(place: Place) -> None:
    [warning] = place.load(KSANA_WORKER="4").warnings
    assert warning == "KSANA_WORKER in the environment is not a setting and is ignored; did you mean KSANA_WORKERS?"


def test_variables_of_the_client_are_not_unknown(place: Place) -> None:
    assert place.load(KSANA_URL="http://k", KSANA_KEY="k", PATH="/bin").warnings == ()


def test_what_kubernetes_writes_for_a_service_is_not_taken_for_settings(place: Place) -> None:
    settings = place.load(
        KSANA_PORT="tcp://10.0.0.1:7100",
        KSANA_SERVICE_HOST="10.0.0.1",
        KSANA_PORT_7100_TCP_ADDR="10.0.0.1",
        KSANA_DB_PORT="tcp://10.0.0.2:5432",
    )
    assert settings.server.port == 7100
    [warning] = settings.warnings
    assert "enableServiceLinks" in warning


def test_a_directory_with_only_a_json_store_is_opened_as_one(place: Place) -> None:
    place.file("{}", "data/jobs.json")
    assert place.load().storage.url == f"json:{place.directory}/data"
    place.file("", "data/ksana.db")
    assert place.load().storage.url == f"sqlite:///{place.directory}/data/ksana.db"


def test_a_given_store_wins_over_what_the_directory_holds(place: Place) -> None:
    place.file("{}", "data/jobs.json")
    assert place.load(KSANA_STORE="sqlite:").storage.url == f"sqlite:///{place.directory}/data/ksana.db"


def test_a_callback_address_of_its_own_wins_over_the_public_one(place: Place) -> None:
    settings = place.load(KSANA_PUBLIC_URL="https://k.example", KSANA_CALLBACK_URL="http://in/cb")
    assert settings.callback.base_url == "http://in/cb"


def test_on_loopback_only_known_host_headers_are_answered(place: Place) -> None:
    hosts = place.load(HOST="127.0.0.2", KSANA_PUBLIC_URL="https://K.example").server.allowed_hosts
    assert hosts == ("localhost", "127.0.0.1", "[::1]", "127.0.0.2", "k.example")


def test_beyond_loopback_any_host_header_is_answered(place: Place) -> None:
    assert place.load(HOST="0.0.0.0").server.allowed_hosts == ("*",)


def test_threads_follow_the_workers(place: Place) -> None:
    assert place.load(WORKERS="16").executor.python_threads == 16
    assert place.load(WORKERS="10000").executor.python_threads == 1000


def test_a_small_pool_lowers_what_it_keeps_idle(place: Place) -> None:
    assert place.load(KSANA_POOL_SIZE="1").storage.pool_idle == 1
    assert place.problem(KSANA_POOL_SIZE="1", KSANA_POOL_IDLE="2").field == "storage.pool_idle"


def test_a_misfire_is_later_than_two_polls(place: Place) -> None:
    assert place.load(KSANA_POLL="10s").scheduler.misfire_threshold == timedelta(seconds=20)
    problem = place.problem(KSANA_POLL="10s", KSANA_MISFIRE_THRESHOLD="5s")
    assert problem.field == "scheduler.misfire_threshold"
    assert "at least 20s" in problem.message


def test_an_exponential_rest_cannot_start_beyond_its_cap(place: Place) -> None:
    problem = place.problem(RETRY_BACKOFF="2h", KSANA_RETRY_STRATEGY="exponential")
    assert problem.field == "executor.default_retry.max_delay"
    assert place.load(RETRY_BACKOFF="2h").executor.default_retry.initial_delay == timedelta(hours=2)


def test_parameters_of_a_go_dsn_without_meaning_are_named(place: Place) -> None:
    settings = place.load(DATABASE_URL="u:p@tcp(h:1)/d?collation=x&parseTime=true")
    [warning] = settings.warnings
    assert "collation" in warning
    assert "parseTime" not in warning


def test_a_report_shows_every_value_and_source_but_no_secret(place: Place) -> None:
    settings = place.load(
        DATABASE_URL="mysql://root:hunter2@db/k",
        KSANA_API_KEY=LONG_KEY,
        KSANA_GLOBAL_HEADERS='{"Authorization": "hunter2"}',
        KSANA_RETENTION="7d",
        KSANA_SIGNING_SECRET="hunter2-and-longer",
        KSANA_ALERT_URLS="https://hooks.example.com/hunter2",
    )
    rows = {row.key: row for row in settings_report(settings)}
    assert list(rows) == [field.key for field in FIELDS]
    assert rows["storage.url"][:3] == ("storage.url", "mysql://root:***@db/k", "environment DATABASE_URL")
    assert rows["auth.keys"].value == "***"
    assert rows["executor.global_headers"].value == "Authorization: ***"
    assert rows["storage.retention"].value == "7d"
    assert rows["server.port"][:3] == ("server.port", "7100", "default")
    assert rows["server.port"].env == ("KSANA_PORT", "PORT")
    assert (rows["executor.signing_secret"].value, rows["alerts.urls"].value) == ("***", "***")
    assert "hunter2" not in f"{rows} {settings!r}"


def test_the_environment_is_a_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KSANA_PORT", "1")
    before = environment()
    monkeypatch.setenv("KSANA_PORT", "2")
    assert before["KSANA_PORT"] == "1"
