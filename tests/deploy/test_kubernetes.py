"""The manifest and the chart: what they name exists, and the tools that read them have nothing to say."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import yaml

import ksana
from tests.deploy.tools import DEPLOY, documents, parsed, run_tool, unknown_settings

MANIFEST = DEPLOY / "kubernetes" / "ksana.yaml"
CHART = DEPLOY / "helm" / "ksana"
TEMPLATES = sorted((CHART / "templates").iterdir())
SCHEMA = json.loads((CHART / "values.schema.json").read_text("utf-8"))
[VALUES] = documents(CHART / "values.yaml")
_ACTION = re.compile(r"\{\{-?\s*(.*?)\s*-?\}\}", re.DOTALL)


def complaints(**changes: Any) -> list[str]:
    """What the schema says of the values with these changes."""
    return [error.message for error in jsonschema_rs.validator_for(SCHEMA).iter_errors({**VALUES, **changes})]


def test_a_pod_is_probed_where_it_answers_and_holds_nothing_it_does_not_need() -> None:
    service, workload = documents(MANIFEST)
    pod = workload["spec"]["template"]["spec"]
    [container] = pod["containers"]
    assert parsed(container["args"]).info_name == "serve"
    paths = {name: container[f"{name}Probe"]["httpGet"]["path"] for name in ("startup", "liveness", "readiness")}
    assert paths == {"startup": "/healthz", "liveness": "/healthz", "readiness": "/readyz"}
    assert {name: VALUES["probes"][name]["httpGet"]["path"] for name in paths} == paths
    assert (pod["enableServiceLinks"], pod["securityContext"]["runAsUser"]) == (False, 10001)
    assert container["securityContext"]["readOnlyRootFilesystem"]
    assert service["spec"]["selector"].items() <= workload["spec"]["template"]["metadata"]["labels"].items()
    assert workload["spec"]["replicas"] == 1


@pytest.mark.parametrize("path", [MANIFEST, CHART / "values.yaml", *TEMPLATES], ids=lambda path: path.name)
def test_every_setting_that_is_named_exists(path: Path) -> None:
    assert unknown_settings(path.read_text("utf-8")) == set()


def test_the_versions_are_those_of_the_program() -> None:
    [chart] = documents(CHART / "Chart.yaml")
    assert (chart["version"], chart["appVersion"]) == (ksana.__version__, ksana.__version__)
    assert f"ksana:{ksana.__version__}" in MANIFEST.read_text("utf-8")


def test_the_values_fit_their_schema_and_every_one_is_in_it() -> None:
    assert complaints() == []
    assert set(VALUES) == set(SCHEMA["properties"]) - {"global"}


@pytest.mark.parametrize(
    "changes",
    [
        {"replica": 2},
        {"replicas": 2},
        {"replicas": 0},
        {"apiKeys": ["secret"]},
        {"store": {"kind": "oracle"}},
        {"store": {"kind": "external", "url": "sqlite:/data"}},
        {"settings": {"WORKERS": "4"}},
        {"settings": {"KSANA_WORKERS": 4}},
        {"basePath": "ksana/"},
    ],
    ids=json.dumps,
)
def test_values_that_cannot_work_are_refused(changes: dict[str, Any]) -> None:
    assert complaints(**changes) != []


def test_several_servers_on_a_database_are_allowed() -> None:
    assert complaints(store={"kind": "external", "url": "postgresql://u:p@h/d"}, replicas=3) == []


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda path: path.name)
def test_a_template_uses_values_and_helpers_that_exist(template: Path) -> None:
    helpers = "".join(path.read_text("utf-8") for path in TEMPLATES if path.suffix == ".tpl")
    defined = set(re.findall(r'define "([\w.]+)"', helpers))
    depth = 0
    for action in _ACTION.findall(template.read_text("utf-8")):
        for path in re.findall(r"\.Values((?:\.\w+)+)", action):
            value: Any = VALUES
            for name in path[1:].split("."):
                assert name in value, f"{path} in {template.name}"
                value = value[name]
        assert set(re.findall(r'include "([\w.]+)"', action)) <= defined
        depth += bool(re.match(r"(if|with|range|define)\b", action)) - (action == "end")
        assert depth >= 0
    assert depth == 0


def test_kubectl_reads_the_manifest(tmp_path: Path) -> None:
    code, said = run_tool("kubectl", "annotate", "--local", "-f", MANIFEST, "-o", "name", "a=b", directory=tmp_path)
    assert (code, said.split()) == (0, ["service/ksana", "statefulset.apps/ksana"])


@pytest.mark.parametrize(
    ("given", "kinds"),
    [
        ({"apiKeys": ["ksk_a_b"]}, {"Secret", "Service", "ServiceAccount", "StatefulSet"}),
        (
            {
                "existingSecret": "mine",
                "store": {"kind": "external"},
                "replicas": 2,
                "ingress": {"enabled": True, "host": "a.example.com", "tlsSecret": "t"},
                "networkPolicy": {"enabled": True},
                "serviceMonitor": {"enabled": True},
            },
            {
                *("Deployment", "Ingress", "NetworkPolicy", "PodDisruptionBudget"),
                *("Service", "ServiceAccount", "ServiceMonitor"),
            },
        ),
    ],
    ids=["sqlite", "database"],
)
def test_helm_makes_of_the_chart_what_is_meant(given: dict[str, Any], kinds: set[str], tmp_path: Path) -> None:
    values = tmp_path / "values.yaml"
    values.write_text(yaml.safe_dump(given))
    code, said = run_tool("helm", "lint", "--strict", CHART, "--values", values, directory=tmp_path)
    assert code == 0, said
    code, said = run_tool("helm", "template", "try", CHART, "--values", values, directory=tmp_path)
    assert code == 0, said
    assert {document["kind"] for document in yaml.safe_load_all(said) if document} == kinds
