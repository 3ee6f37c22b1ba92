"""The image and the compose file, as far as they can be judged without an engine."""

from __future__ import annotations

import json
import re
from fnmatch import fnmatch
from typing import Any

import click
import pytest

from tests.deploy.tools import ROOT, documents, parsed, run_tool, unknown_settings

DOCKERFILE = (ROOT / "Dockerfile").read_text("utf-8")
COMPOSE = ROOT / "compose.yaml"


def instructions(stage: int) -> list[tuple[str, str]]:
    """The instructions of a stage, each on one line."""
    joined = re.sub(r"\\\n\s*", "", "\n".join(line for line in DOCKERFILE.splitlines() if not line.startswith("#")))
    stages = re.split(r"^(?=FROM )", joined, flags=re.MULTILINE)[1:]
    lines = [line for line in stages[stage].splitlines() if line.strip()]
    return [(line.split(None, 1)[0], line.split(None, 1)[1]) for line in lines]


def test_the_image_has_a_user_a_volume_and_a_port_and_needs_no_shell() -> None:
    final = dict(instructions(1))
    assert (final["USER"], final["VOLUME"], final["EXPOSE"]) == ("10001:10001", "/data", "7100")
    assert "RUN" not in final
    assert all(json.loads(final[name]) for name in ("ENTRYPOINT", "CMD"))


def test_what_the_image_runs_are_commands_of_ours() -> None:
    final = dict(instructions(1))
    [entry], command = json.loads(final["ENTRYPOINT"]), json.loads(final["CMD"])
    health = json.loads(final["HEALTHCHECK"].partition(" CMD ")[2])
    assert entry == health[0] == "ksana"
    assert parsed(command).info_name == "serve"
    assert parsed(health[1:]).info_name == "health"
    assert unknown_settings(DOCKERFILE) == set()


@pytest.mark.parametrize("words", [["sserve"], ["serve", "--prot", "7100"], ["key", "make"], ["health", "extra"]])
def test_a_command_we_do_not_have_would_be_noticed(words: list[str]) -> None:
    with pytest.raises(click.UsageError):
        parsed(words)


def test_what_is_copied_exists_and_is_not_kept_from_the_build() -> None:
    lines = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if line and not line.startswith("#")]
    allowed = {line[1:] for line in lines if line.startswith("!")}
    copied = [word for name, value in instructions(0) if name == "COPY" for word in value.split()[:-1]]
    assert copied
    assert all((ROOT / name).exists() for name in copied)
    assert set(copied) == allowed
    assert "*" in lines
    # What pip reads of the project has to be there.
    assert {"pyproject.toml", "README.md", "LICENSE", "constraints.txt", "src"} == set(copied)
    assert not any(fnmatch("src/ksana/console/dist/index.html", line) for line in lines if line not in ("*", "!src"))


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    [document] = documents(COMPOSE)
    found: dict[str, Any] = document
    return found


def test_one_service_starts_by_default_and_the_rest_by_profile(compose: dict[str, Any]) -> None:
    services = compose["services"]
    assert [name for name, service in services.items() if "profiles" not in service] == ["ksana"]
    profiles = {profile for service in services.values() for profile in service.get("profiles", [])}
    assert profiles == {"postgres", "mysql", "redis", "monitoring", "ha", "demo"}


def test_what_services_refer_to_exists(compose: dict[str, Any]) -> None:
    services = compose["services"]
    for service in services.values():
        assert set(service.get("depends_on", {})) <= set(services)
        for volume in service.get("volumes", []):
            source = volume.split(":")[0]
            assert (ROOT / source).exists() if source.startswith(".") else source in compose["volumes"], volume


def test_ports_are_published_on_loopback_only(compose: dict[str, Any]) -> None:
    ports = [port for service in compose["services"].values() for port in service.get("ports", [])]
    assert len(ports) == len({port.rsplit(":", 1)[0] for port in ports}) == 5
    assert all(port.startswith("127.0.0.1:") for port in ports)


def test_services_of_ours_run_what_there_is(compose: dict[str, Any]) -> None:
    ours = {name: service for name, service in compose["services"].items() if service["image"] == "ksana"}
    assert set(ours) == {"ksana", "ksana-2", "demo"}
    for service in ours.values():
        parsed(service.get("command", ["serve"]))
        assert (service["read_only"], service["cap_drop"]) == (True, ["ALL"])
    assert unknown_settings(COMPOSE.read_text()) == set()


def test_the_tool_that_reads_the_compose_file_accepts_it() -> None:
    code, said = run_tool("docker", "compose", "version")
    if code != 0:
        pytest.skip("TOOL: docker has no compose here")
    code, said = run_tool("docker", "compose", "--profile", "*", "--file", COMPOSE, "config", "--quiet", directory=ROOT)
    assert code == 0, said
