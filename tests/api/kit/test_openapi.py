from __future__ import annotations

import json
import re
from typing import Any

import pytest

from ksana.api.kit.openapi import describe
from tests.api.kit.sample import RUNS, THINGS


@pytest.fixture(scope="module")
def description() -> dict[str, Any]:
    return describe([THINGS, RUNS], title="Sample", version="1")


def test_every_reference_leads_somewhere(description: dict[str, Any]) -> None:
    names = set(re.findall(r"#/components/schemas/(\w+)", json.dumps(description)))
    assert names
    assert names <= description["components"]["schemas"].keys()


def test_operations_have_names_of_their_own_and_the_tag_of_their_surface(description: dict[str, Any]) -> None:
    operations = [operation for item in description["paths"].values() for operation in item.values()]
    names = [operation["operationId"] for operation in operations]
    assert len(set(names)) == len(names)
    assert {tag for operation in operations for tag in operation["tags"]} == {"things", "runs"}


def test_parameters_of_path_query_and_headers_are_described(description: dict[str, Any]) -> None:
    made = {parameter["name"]: parameter for parameter in description["paths"]["/things"]["post"]["parameters"]}
    assert made["Idempotency-Key"]["in"] == "header"
    listed = {parameter["name"]: parameter for parameter in description["paths"]["/things"]["get"]["parameters"]}
    assert listed["page_size"]["schema"]["maximum"] == 200
    assert listed["sort"]["schema"] == {"type": "string"}
    assert listed["tag"]["schema"]["items"] == {"type": "string"}
    changed = description["paths"]["/things/{id}"]["put"]["parameters"]
    assert [(parameter["in"], parameter["name"]) for parameter in changed] == [
        ("path", "id"),
        ("header", "If-Match"),
    ]
    assert changed[0]["schema"]["type"] == "integer"


def test_answers_list_what_the_route_and_the_kit_can_say(description: dict[str, Any]) -> None:
    post = description["paths"]["/things"]["post"]["responses"]
    assert {"201", "400", "401", "403", "409", "413", "415", "421", "422", "500", "503"} == post.keys()
    assert post["409"]["description"] == "ALREADY_EXISTS, IDEMPOTENCY_IN_FLIGHT"
    put = description["paths"]["/things/{id}"]["put"]["responses"]
    assert {"404", "409", "412"} <= put.keys()
    assert "content" not in description["paths"]["/things/{id}"]["delete"]["responses"]["204"]


def test_a_public_route_asks_for_no_key(description: dict[str, Any]) -> None:
    assert "security" not in description["paths"]["/ping"]["get"]
    assert description["paths"]["/things"]["get"]["security"]
    assert description["paths"]["/things"]["get"]["x-scope"] == "job:read"


def test_two_routes_on_one_path_are_described_together(description: dict[str, Any]) -> None:
    both = description["paths"]["/runs/{id}"]["get"]
    assert [kind["type"] for kind in both["parameters"][0]["schema"]["anyOf"]] == ["integer", "string"]
    assert both["operationId"] == "runs_by_number_or_runs_by_uuid"


def test_colon_verbs_keep_their_colon(description: dict[str, Any]) -> None:
    assert "post" in description["paths"]["/things/{id}:start"]
