from __future__ import annotations

import pytest

from ksana.api.kit import PUBLIC, Call, Route, Surface, current_request_id
from tests.api.kit.client import Client
from tests.api.kit.sample import sample_app


async def tell(call: Call[None, None]) -> dict[str, str]:
    return {"call": call.request_id, "context": current_request_id()}


CLIENT = Client(sample_app(extra=(Surface("tell", [Route("GET", "/tell", tell, PUBLIC)]),)))


async def test_the_callers_id_comes_back_and_is_known_inside() -> None:
    answer = await CLIENT.get("/tell", headers={"X-Request-Id": "abc-1.2_3"})
    assert answer.headers["x-request-id"] == "abc-1.2_3"
    assert answer.json() == {"call": "abc-1.2_3", "context": "abc-1.2_3"}
    assert current_request_id() == ""


@pytest.mark.parametrize("given", ["", "a b", "x" * 129, "<script>", "é"])
async def test_an_id_that_is_not_safe_to_log_is_replaced(given: str) -> None:
    answer = await CLIENT.get("/tell", headers={"X-Request-Id": given})
    assert answer.headers["x-request-id"] == answer.json()["call"] != given


async def test_two_requests_without_an_id_get_two() -> None:
    one, other = await CLIENT.get("/tell"), await CLIENT.get("/tell")
    assert one.headers["x-request-id"] != other.headers["x-request-id"]


async def test_an_error_names_the_request() -> None:
    answer = await CLIENT.get("/nowhere", headers={"X-Request-Id": "abc"})
    assert answer.json()["request_id"] == answer.headers["x-request-id"] == "abc"
