"""Alerts and dashboard ask for series, labels and values that a node has."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from ksana.domain.states import State
from tests.deploy.tools import DEPLOY, documents, run_tool
from tests.observe.test_metrics import NAMES

ALERTS = DEPLOY / "prometheus" / "alerts.yaml"
SCRAPES = DEPLOY / "prometheus" / "prometheus.yaml"
DASHBOARD = json.loads((DEPLOY / "grafana" / "ksana.json").read_text("utf-8"))
# What Prometheus and the client library add.
FOREIGN: dict[str, set[str]] = {"up": set(), "process_resident_memory_bytes": set()}
DECISIONS = {"fired", "skipped", "missed", "left_out"}
_SELECTOR = re.compile(r"(?P<name>[a-z_][a-z0-9_]*)\{(?P<labels>[^}]*)\}")
_LABEL = re.compile(r'(\w+)\s*(=~?|!=|!~)\s*"([^"]*)"')


def known() -> dict[str, set[str]]:
    """Every series by the name it is asked for, with its labels."""
    found: dict[str, set[str]] = dict(FOREIGN)
    for (name, kind), labels in NAMES.items():
        if kind == "histogram":
            found |= {f"{name}_bucket": {*labels, "le"}, f"{name}_sum": set(labels), f"{name}_count": set(labels)}
        else:
            found[name] = set(labels)
    return found


def rules() -> list[dict[str, Any]]:
    [document] = documents(ALERTS)
    return [rule for group in document["groups"] for rule in group["rules"]]


def expressions() -> Iterator[str]:
    yield from (rule["expr"] for rule in rules())
    for panel in DASHBOARD["panels"]:
        yield from (target["expr"] for target in panel["targets"])


@pytest.mark.parametrize("expression", sorted(set(expressions())))
def test_what_is_asked_for_is_there(expression: str) -> None:
    asked = list(_SELECTOR.finditer(expression))
    assert asked, "every series is asked for with the scrape it is from"
    series = known()
    for one in asked:
        assert one["name"] in series, one["name"]
        for label, _, value in _LABEL.findall(one["labels"]):
            assert label == "job" or label in series[one["name"]]
            values = set(value.split("|"))
            assert label != "state" or values <= {state.value for state in State}
            assert label != "decision" or values <= DECISIONS
    grouped = {label.strip() for labels in re.findall(r"by \(([^)]*)\)", expression) for label in labels.split(",")}
    assert grouped <= {"instance", *(label for one in asked for label in series[one["name"]])}


def test_every_alert_says_what_is_wrong_and_how_bad_it_is() -> None:
    names = [rule["alert"] for rule in rules()]
    assert len(names) == len(set(names))
    for rule in rules():
        assert rule["labels"]["severity"] in ("critical", "warning", "info")
        assert rule["annotations"]["summary"]


def test_the_page_about_alerts_tells_of_each() -> None:
    page = (DEPLOY.parent / "docs" / "how-to" / "alerts.md").read_text("utf-8")
    assert [rule["alert"] for rule in rules() if rule["alert"] not in page] == []


def test_no_two_panels_share_a_place() -> None:
    cells = [
        (x, y)
        for place in (panel["gridPos"] for panel in DASHBOARD["panels"])
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]
    assert len(cells) == len(set(cells))
    assert max(x for x, _ in cells) == 23


def test_prometheus_accepts_the_rules_and_the_scrapes() -> None:
    code, said = run_tool("promtool", "check", "rules", ALERTS)
    assert code == 0, said
    code, said = run_tool("promtool", "check", "config", SCRAPES)
    assert code == 0, said
