"""How answers look: on a terminal, in a pipe, in JSON; and the commands that need nobody else."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from ksana.cli.explain import span_words
from ksana.cli.language import language_of
from ksana.cli.looks import span_text
from ksana.cli.output import Cell, Column, Out
from tests.cli.conftest import Ksana

NAME = "billing.sync." + "long-" * 20 + "name"
ROWS = [{"id": 1, "name": NAME, "error": "it\tfailed\nbadly"}, {"id": 2, "name": "短", "error": ""}]
COLUMNS: list[Column[dict[str, object]]] = [
    Column("id", lambda row: str(row["id"])),
    Column("name", lambda row: Cell(str(row["name"]), "bold")),
    Column("error", lambda row: Cell(str(row["error"]), "red"), is_text=True),
]


def shown(capsys: pytest.CaptureFixture[str], out: Out) -> str:
    out.table(COLUMNS, ROWS, lambda row: row["id"])
    return capsys.readouterr().out


def test_in_a_pipe_it_is_lines_with_tabs(capsys: pytest.CaptureFixture[str]) -> None:
    assert shown(capsys, Out(is_terminal=False)) == f"1\t{NAME}\tit failed badly\n2\t短\t\n"


def test_ids_and_json_when_asked(capsys: pytest.CaptureFixture[str]) -> None:
    assert shown(capsys, Out(is_quiet=True, is_terminal=True)) == "1\n2\n"
    lines = shown(capsys, Out(as_json=True, is_terminal=True)).splitlines()
    assert [json.loads(line) for line in lines] == ROWS


def test_a_name_is_never_cut_short_however_narrow_the_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    monkeypatch.setenv("NO_COLOR", "1")
    printed = shown(capsys, Out(is_terminal=True, language="zh"))
    assert NAME in printed
    assert "名称" in printed
    assert "\x1b[31m" not in printed
    out = Out(is_terminal=True)
    out.row(COLUMNS, ROWS[0], lambda row: row["id"])
    assert NAME in capsys.readouterr().out
    out.fields([("name", NAME), ("error", "")], ROWS[0], 1)
    fields = capsys.readouterr().out
    assert NAME in "".join(fields.split()).replace("\x1b[2m", "").replace("\x1b[0m", "")
    assert "error" not in fields


def test_colour_is_for_terminals(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    assert "\x1b[31m" in shown(capsys, Out(is_terminal=True))
    assert "\x1b" not in shown(capsys, Out(is_terminal=False))


def test_instants_have_their_offset() -> None:
    at = datetime(2026, 11, 15, 16, tzinfo=UTC)
    assert Out(zone=ZoneInfo("Asia/Shanghai")).instant(at) == "2026-11-16 00:00:00 +08:00"
    assert Out(zone=UTC).instant(at) == "2026-11-15 16:00:00 UTC"
    assert Out().instant(None) == ""


def test_an_instant_that_is_on_no_other_clock_is_shown_in_utc() -> None:
    """As of a job that is never meant to run."""
    never = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)
    assert Out(zone=ZoneInfo("Asia/Shanghai")).instant(never) == "9999-12-31 23:59:59 UTC"


def test_spans_are_said_as_people_say_them() -> None:
    assert [span_text(ms) for ms in (None, 40, 1500, 72_000, 3_660_000)] == (
        ["", "40 ms", "1.5 s", "1 min 12 s", "1 h 1 min"]
    )
    assert span_words(timedelta(hours=2, minutes=30)) == "2 h 30 min"
    assert span_words(timedelta(0)) == "less than 1 s"


def test_the_language_is_that_of_the_locale() -> None:
    assert language_of({"LANG": "zh_CN.UTF-8"}) == "zh"
    assert language_of({"LC_ALL": "C", "LANG": "zh_CN.UTF-8"}) == "en"
    assert language_of({}) == "en"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_gets_its_completion(ksana: Ksana, shell: str) -> None:
    said = ksana("completion", shell)
    assert said.code == 0
    assert "_KSANA_COMPLETE" in said.out


def test_completion_offers_verbs(tmp_path: Path) -> None:
    words = {"_KSANA_COMPLETE": "bash_complete", "COMP_WORDS": "ksana jobs pa", "COMP_CWORD": "2", "PATH": ""}
    done = subprocess.run(
        [sys.executable, "-m", "ksana"], cwd=tmp_path, env=words, capture_output=True, text=True, check=False
    )
    assert "plain,pause" in done.stdout


def test_two_files_to_begin_with(ksana: Ksana, tmp_path: Path) -> None:
    assert ksana("init", "new", "--dry-run").code == 0
    assert not (tmp_path / "new").exists()
    assert ksana("init", "new").code == 0
    ast.parse((tmp_path / "new" / "app.py").read_text())
    assert ksana("config", "show", "--config", "new/ksana.yaml").code == 0
    assert ksana("init", "new").code == 4
    assert ksana("init", "new", "--force").code == 0


@pytest.mark.parametrize("words", [("--help",), ("explain", "0 9 * * *")])
def test_what_should_answer_at_once_imports_nothing_heavy(words: tuple[str, ...]) -> None:
    heavy = ("asyncio", "rich.console", "starlette", "uvicorn", "yaml", "ksana.app", "ksana.client", "ksana.engine")
    program = (
        f"import sys\nsys.argv = ['ksana', *{words!r}]\nfrom ksana.cli import main\n"
        f"try:\n    main()\nexcept SystemExit:\n    pass\n"
        f"sys.stderr.write('|'.join(name for name in {heavy!r} if name in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stderr == ""
