from __future__ import annotations

import pytest

from ksana.api.kit.errors import ErrorStyle
from ksana.api.kit.router import RouteMiss, Router

UUID = "0b8f1c9a-6a3c-4b1e-9d3a-0123456789ab"


@pytest.fixture
def router() -> Router[str]:
    router: Router[str] = Router()
    for path in (
        "/",
        "/jobs",
        "/jobs:bulk",
        "/jobs/stats",
        "/jobs/{id}",
        "/jobs/{id}/runs",
        "/jobs/{id}:start",
        "/runs/{id:int}",
        "/runs/{id:uuid}",
        "/runs/{id:uuid}:stop",
        "/runs/{id:uuid}/nodes/{node}:retry",
    ):
        router.add("GET", path, path, ErrorStyle.CODE)
    return router


@pytest.mark.parametrize(
    ("path", "route", "params"),
    [
        ("/", "/", {}),
        ("/jobs", "/jobs", {}),
        ("/jobs:bulk", "/jobs:bulk", {}),
        ("/jobs%3Abulk", "/jobs:bulk", {}),
        ("/jobs/stats", "/jobs/stats", {}),
        ("/jobs/a", "/jobs/{id}", {"id": "a"}),
        ("/jobs/stats/runs", "/jobs/{id}/runs", {"id": "stats"}),
        ("/jobs/a:start", "/jobs/{id}:start", {"id": "a"}),
        ("/jobs/a%3Astart", "/jobs/{id}:start", {"id": "a"}),
        ("/jobs/a%3astart", "/jobs/{id}:start", {"id": "a"}),
        ("/jobs/a:b:start", "/jobs/{id}:start", {"id": "a:b"}),
        ("/jobs/a:start:b", "/jobs/{id}", {"id": "a:start:b"}),
        ("/jobs/a:begin", "/jobs/{id}", {"id": "a:begin"}),
        ("/jobs/a:start/runs", "/jobs/{id}/runs", {"id": "a:start"}),
        ("/jobs/a%2Fb%20c", "/jobs/{id}", {"id": "a/b c"}),
        ("/jobs/%E4%BB%BB", "/jobs/{id}", {"id": "任"}),
        ("/runs/42", "/runs/{id:int}", {"id": 42}),
        ("/runs/9223372036854775807", "/runs/{id:int}", {"id": 2**63 - 1}),
        (f"/runs/{UUID.upper()}", "/runs/{id:uuid}", {"id": UUID}),
        (f"/runs/{UUID}:stop", "/runs/{id:uuid}:stop", {"id": UUID}),
        (f"/runs/{UUID}/nodes/n:retry", "/runs/{id:uuid}/nodes/{node}:retry", {"id": UUID, "node": "n"}),
    ],
)
def test_a_path_leads_to_its_route(router: Router[str], path: str, route: str, params: dict[str, str | int]) -> None:
    match = router.find(path)
    assert (match.endpoint.methods["GET"], match.params) == (route, params)


@pytest.mark.parametrize("path", ["/job", "/jobs/", "/jobs//runs", "/jobs/a/b", "/jobs/a/runs/", "", "*", "//"])
def test_an_unknown_path_leads_nowhere(router: Router[str], path: str) -> None:
    with pytest.raises(RouteMiss) as caught:
        router.find(path)
    assert caught.value.error.code == "NOT_FOUND"


@pytest.mark.parametrize(
    "path",
    [
        "/runs/x",
        "/runs/-1",
        "/runs/007",
        "/runs/9223372036854775808",
        "/runs/1.0",
        "/runs/x:stop",
        "/jobs/%00",
        "/jobs/%ff",
    ],
)
def test_an_id_of_the_wrong_form_is_named(router: Router[str], path: str) -> None:
    with pytest.raises(RouteMiss) as caught:
        router.find(path)
    assert caught.value.error.code == "INVALID_ID"


def test_the_message_names_every_form_the_place_takes(router: Router[str]) -> None:
    with pytest.raises(RouteMiss) as caught:
        router.find("/runs/x")
    assert caught.value.error.message == "id: must be a whole number or a UUID"
    assert caught.value.style is ErrorStyle.CODE
