from __future__ import annotations

import logging
import sys
import tomllib
from datetime import UTC, datetime, timedelta
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from ksana.domain.errors import AlreadyExists, InvalidArgument
from ksana.domain.outcomes import Outcome, Verdict
from ksana.targets.builtin import NoopTarget
from ksana.targets.python import PythonTarget
from ksana.targets.registry import GROUP, load_targets
from ksana.targets.services import TargetServices
from tests.targets.contexts import attempt_context


async def never_sleep(span: timedelta) -> None:
    raise AssertionError("building a target must not sleep")


SERVICES = TargetServices(
    sleep=never_sleep,
    now=lambda: datetime(2026, 1, 5, tzinfo=UTC),
    functions={"greet": lambda: "hello"},
    http_signing_secret=b"hush",
)


def point(name: str, value: str) -> EntryPoint:
    return EntryPoint(name, value, GROUP)


PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
OWN = [point(name, value) for name, value in PROJECT["entry-points"][GROUP].items()]


def build_with_a_wrong_setting(services: TargetServices) -> NoopTarget:
    raise InvalidArgument.of("executor.python_threads", "must be at least 1")


def build_broken(services: TargetServices) -> NoopTarget:
    raise RuntimeError("no licence")


def test_targets_are_found_by_their_entry_points() -> None:
    targets = load_targets(SERVICES, OWN)
    assert sorted(targets) == [
        "celery", "chain", "echo", "fail", "http", "job", "noop", "print", "python", "queue", "sleep", "task", "wait",
    ]  # fmt: skip
    assert all(target.kind == kind for kind, target in targets.items())


def test_the_services_reach_the_builders() -> None:
    python = load_targets(SERVICES, OWN)["python"]
    assert isinstance(python, PythonTarget)
    assert python.check({"function": "greet"})["function"] == "greet"


@pytest.mark.parametrize(
    "value", ["nowhere.to.be.found:build", "ksana.targets.builtin:missing", f"{__name__}:build_broken"]
)
def test_a_plug_in_that_does_not_work_is_reported_and_left_out(value: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        targets = load_targets(SERVICES, [*OWN, point("fax", value)])
    assert "fax" not in targets
    assert "noop" in targets
    assert f"target 'fax' is left out: {value} does not load" in caplog.text


def test_a_plug_in_whose_target_is_of_another_kind_is_reported_and_left_out(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.ERROR):
        targets = load_targets(SERVICES, [point("fax", "ksana.targets.builtin:build_noop")])
    assert targets == {}
    assert "builds a target of kind 'noop'" in caplog.text


def test_two_plug_ins_of_one_kind_are_an_error_that_names_both() -> None:
    with pytest.raises(AlreadyExists) as refused:
        load_targets(SERVICES, [*OWN, point("noop", f"{__name__}:build_broken")])
    assert "ksana.targets.builtin:build_noop" in refused.value.message
    assert f"{__name__}:build_broken" in refused.value.message


def test_one_entry_point_seen_twice_is_no_conflict() -> None:
    assert sorted(load_targets(SERVICES, [*OWN, *OWN])) == sorted(entry.name for entry in OWN)


def test_a_wrong_setting_stops_the_start() -> None:
    with pytest.raises(InvalidArgument, match=r"executor\.python_threads"):
        load_targets(SERVICES, [point("noop", f"{__name__}:build_with_a_wrong_setting")])


PLUG_IN = """
from ksana.domain.outcomes import Outcome, Verdict

class Demo:
    kind = "demo"

    def check(self, config):
        return config

    def awaits_callback(self, config, input=None):
        return False

    async def execute(self, context, config):
        return Outcome(Verdict.SUCCESS, result=f'"{context.run_id} {config["say"]}"'.encode())

    async def close(self):
        pass

def build(services):
    return Demo()
"""


async def test_a_package_adds_a_kind_by_being_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    about = tmp_path / "ksana_demo-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: ksana-demo\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(f"[{GROUP}]\ndemo = ksana_demo_plug_in:build\n")
    (tmp_path / "ksana_demo_plug_in.py").write_text(PLUG_IN)
    monkeypatch.syspath_prepend(tmp_path)
    try:
        targets = load_targets(SERVICES)
    finally:
        sys.modules.pop("ksana_demo_plug_in", None)
    assert {"demo", "noop", "chain"} <= targets.keys()
    outcome = await targets["demo"].execute(attempt_context(), targets["demo"].check({"say": "hello"}))
    assert outcome == Outcome(Verdict.SUCCESS, result=b'"7 hello"')


def test_services_keep_their_secret() -> None:
    assert "hush" not in repr(SERVICES)
