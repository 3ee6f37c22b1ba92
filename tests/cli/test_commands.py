"""Commands that answer and end: explain, version, key, db."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import ksana as package
from ksana.cli.keys import _SCOPES
from ksana.domain.keys import Scope, parse_key
from tests.cli.conftest import Ksana


def test_the_version_is_printed(ksana: Ksana) -> None:
    assert ksana("version") == (0, f"{package.__version__}\n", "")
    assert ksana("--version").out == f"ksana, version {package.__version__}\n"


def test_help_lists_the_commands(ksana: Ksana) -> None:
    said = ksana("--help")
    assert said.code == 0
    for name in ("serve", "worker", "jobs", "runs", "chains", "queue", "tail", "explain", "import", "doctor", "health"):
        assert f"\n  {name} " in said.out
    for name in ("api", "bench", "store", "db", "key", "config", "init", "completion", "version"):
        assert f"\n  {name} " in said.out


def test_the_module_is_the_command(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "ksana", "version"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout == f"{package.__version__}\n"


def test_explain_prints_json_for_programs(ksana: Ksana) -> None:
    said = ksana(
        "explain", "30 9 * * 1-5", "--tz", "Asia/Shanghai", "--from", "2026-11-13T09:30:00+08:00", "-n", "3", "--json"
    )
    assert (said.code, said.err) == (0, "")
    shown = json.loads(said.out)
    assert shown["normalized"] == "0 30 9 * * 1-5"
    assert shown["next"] == ["2026-11-16T01:30:00Z", "2026-11-17T01:30:00Z", "2026-11-18T01:30:00Z"]
    assert shown["words"]["zh"] == "每周一至周五 09:30（上海时间）"
    assert shown["fires"][0] == {"at": "2026-11-16T01:30:00Z", "local": "2026-11-16T09:30:00+08:00", "dst": None}


def test_explain_says_what_it_means_in_both_languages(ksana: Ksana) -> None:
    said = ksana("explain", "0 */5 * * *", "--tz", "Asia/Shanghai", "--from", "2026-11-15T18:30:00Z")
    assert said.code == 0
    assert said.out.splitlines() == [
        "  5 fields, read as  minute hour day month weekday   → stored as  0 0 */5 * * *",
        "  At minute 0 past every 5th hour (Asia/Shanghai)      每 5 小时的第 0 分（上海时间）",
        "  next  Mon 2026-11-16 05:00 +08:00   in 2 h 30 min      (then 10:00, 15:00, 20:00, Tue 00:00)",
    ]
    assert said.err == "  ! uneven: 20:00 → 00:00 is 4 h        ! wanted every 5 minutes?  */5 * * * *\n"


def test_explain_marks_the_fires_that_a_change_of_clocks_moves(ksana: Ksana) -> None:
    words = ("explain", "30 2 * * *", "--tz", "Europe/Berlin", "--from", "2030-03-30T00:00:00Z", "-n", "2")
    assert "03:00 +02:00   ! clocks skip from 02:00 to 03:00" in ksana(*words).out
    only_chinese = ksana(*words, "--lang", "zh").out
    assert "每天 02:30（柏林时间）" in only_chinese
    assert "every day" not in only_chinese
    assert ksana(*words, "-q").out == "2030-03-30T01:30:00Z\n2030-03-31T01:00:00Z\n"


def test_explain_starts_from_now_and_shows_five(ksana: Ksana) -> None:
    assert len(json.loads(ksana("explain", "* * * * *", "--json").out)["next"]) == 5


def test_explain_needs_neither_server_nor_store(ksana: Ksana, tmp_path: Path) -> None:
    assert ksana("explain", "@daily").code == 0
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("explain", "0 0 30 2 *"), 1, "never fires"),
        (("explain", "* * *"), 2, "expected 5 fields"),
        (("explain", "* * * * *", "--tz", "Asia/Shangai"), 2, "--tz: unknown zone"),
        (("explain", "* * * * *", "--from", "soon"), 2, "--from:"),
        (("explain", "* * * * *", "-n", "0"), 2, "-n"),
        (("explain",), 2, "EXPR"),
        (("key", "create", "--scope", "everything"), 2, "--scope"),
        (("key", "create", "--name", " "), 2, "name: give the key a name"),
        (("key", "revoke", "0123456789abcdef"), 3, "no active key"),
        (("db", "migrate", "--store", "floppy://a"), 2, "storage.url"),
        (("db", "migrate", "--store", "postgresql://127.0.0.1:1/none"), 5, "127.0.0.1"),
        (("db", "migrate", "--config", "nowhere.yaml"), 2, "nowhere.yaml"),
        (("db", "migrate", "--log-level", "loud"), 2, "logging.level"),
        (("serve", "--port", "99999"), 2, "server.port"),
        (("serve", "--functions", "no.such:thing"), 2, "functions: cannot load 'no.such:thing'"),
        (("serve", "--functions", "json:dumps"), 2, "not a mapping"),
        (("worker", "json"), 2, "functions"),
        (("fly",), 2, "fly"),
        (("explan",), 2, "did you mean explain?"),
        (("jobs", "lst"), 2, "did you mean list?"),
        (("jobs", "list", "--url", "http://127.0.0.1:1"), 5, "ksana serve"),
        (("runs", "list", "--state", "faild", "--url", "http://127.0.0.1:1"), 2, "did you mean failed?"),
        (("jobs", "delete", "--url", "http://127.0.0.1:1"), 2, "JOB: name one by id or name"),
        (("jobs", "apply", "-f", "nowhere"), 3, "there is no file or directory nowhere"),
        (("chains", "validate", "nowhere.json"), 3, "there is no file nowhere.json"),
    ],
)
def test_a_command_that_cannot_be_done_says_why(
    ksana: Ksana, arguments: tuple[str, ...], code: int, words: str
) -> None:
    said = ksana(*arguments)
    assert (said.code, said.out) == (code, "")
    assert words in said.err
    assert "Traceback" not in said.err


def test_a_key_is_shown_once_listed_and_revoked(ksana: Ksana, tmp_path: Path) -> None:
    made = ksana("key", "create", "--name", "ci", "--scope", "job:read", "--scope", "run:read")
    assert made.code == 0
    presented = parse_key(made.out.strip())
    assert presented is not None
    assert "not shown again" in made.err
    secret = presented.secret.encode()
    assert all(secret not in path.read_bytes() for path in (tmp_path / "data").iterdir())
    [line] = ksana("key", "list").out.splitlines()
    key_id, name, scopes, created_at, state = line.split("\t")
    assert (key_id, name, scopes, state) == (presented.id, "ci", "job:read,run:read", "active")
    assert created_at.endswith("Z")
    assert ksana("key", "revoke", key_id).code == 0
    assert ksana("key", "list").out.split("\t")[-1].startswith("revoked ")
    listed = json.loads(ksana("key", "list", "--json").out)
    assert (listed["id"], listed["scopes"], "digest" in listed) == (key_id, ["job:read", "run:read"], False)
    assert ksana("key", "revoke", key_id).code == 3


def test_a_key_made_offline_is_stored_nowhere(ksana: Ksana, tmp_path: Path) -> None:
    assert parse_key(ksana("key", "create", "--offline").out.strip()) is not None
    assert list(tmp_path.iterdir()) == []


def test_every_scope_can_be_given_to_a_key() -> None:
    assert set(_SCOPES) == set(Scope)


def test_the_store_is_migrated_as_often_as_one_likes(ksana: Ksana, tmp_path: Path) -> None:
    for _ in range(2):
        said = ksana("db", "migrate")
        assert (said.code, said.out) == (0, f"sqlite:///{tmp_path}/data/ksana.db is up to date\n")


def test_a_password_is_not_printed(ksana: Ksana) -> None:
    said = ksana("db", "migrate", "--store", "postgresql://me:hunter2@127.0.0.1:1/none")
    assert said.code == 5
    assert "hunter2" not in said.out + said.err


@pytest.mark.parametrize("spelling", [("-config=my.yaml",), ("-config", "my.yaml"), ("--config", "my.yaml")])
def test_the_file_of_settings_is_named_in_either_spelling(
    ksana: Ksana, tmp_path: Path, spelling: tuple[str, ...]
) -> None:
    (tmp_path / "my.yaml").write_text("storage:\n  dir: elsewhere\n")
    assert ksana("db", "migrate", *spelling).code == 0
    assert (tmp_path / "elsewhere" / "ksana.db").exists()


def test_flags_win_over_variables_and_those_over_the_file(
    ksana: Ksana, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ksana.yaml").write_text("storage:\n  dir: from-file\n")
    for name, setup in (
        ("from-file", {}),
        ("from-bare", {"DATA_DIR": "from-bare"}),
        ("from-ksana", {"KSANA_DATA": "from-ksana"}),
    ):
        for variable, value in setup.items():
            monkeypatch.setenv(variable, value)
        assert f"/{name}/ksana.db" in ksana("db", "migrate").out
    assert "/from-flag/ksana.db" in ksana("db", "migrate", "--data-dir", "from-flag").out


def test_config_show_tells_every_value_and_its_source(ksana: Ksana) -> None:
    said = ksana("config", "show", "--json", "--log-level", "debug")
    assert said.code == 0
    shown = json.loads(said.out)
    assert shown["logging.level"] == {"value": "debug", "source": "flag --log-level"}
    assert shown["server.port"] == {"value": "7100", "source": "default"}


@pytest.mark.parametrize("text", ["raise RuntimeError('boom')", "1 +"])
def test_a_program_that_cannot_be_loaded_is_not_called_a_bug_of_ours(ksana: Ksana, tmp_path: Path, text: str) -> None:
    (tmp_path / "broken_program.py").write_text(text)
    said = ksana("worker", "broken_program:app")
    assert said.code == 2
    assert "broken_program.py" in said.err
    assert "functions: cannot load 'broken_program:app'" in said.err
    assert "this is a bug" not in said.err
