from __future__ import annotations

import pytest

from ksana.api.kit import PageQuery, encode, page_of
from ksana.api.kit.paging import Order, parse_sort
from ksana.domain.errors import InvalidArgument
from tests.api.kit.client import Client
from tests.api.kit.sample import sample_app


def test_a_page_says_where_it_stands_and_a_cursor_only_if_there_is_one() -> None:
    query = PageQuery(page=3, page_size=20)
    assert query.offset == 40
    assert encode(page_of([1], 41, query)) == b'{"items":[1],"total":41,"page":3,"page_size":20}'
    assert b'"next_cursor":"c"' in encode(page_of([1], 41, query, "c"))


def test_sort_names_a_known_field() -> None:
    default = Order("created_at", descending=True)
    assert parse_sort(None, ["name"], default) == default
    assert parse_sort("name", ["name"], default) == Order("name", descending=False)
    assert parse_sort("-name", ["name"], default) == Order("name", descending=True)
    with pytest.raises(InvalidArgument, match="did you mean name"):
        parse_sort("-nmae", ["name", "created_at"], default)


async def test_a_list_is_read_page_by_page() -> None:
    client = Client(sample_app())
    for number in range(3):
        await client.post("/things", {"name": f"t{number}"})
    page = (await client.get("/things?page=2&page_size=2")).json()
    assert ([item["name"] for item in page["items"]], page["total"]) == (["t2"], 3)


@pytest.mark.parametrize("query", ["page=0", "page=-1", "page_size=0", "page_size=201", "page=x", "page=1000001"])
async def test_a_page_out_of_bounds_is_refused(query: str) -> None:
    answer = await Client(sample_app()).get(f"/things?{query}")
    assert answer.status == 400
    assert answer.json()["problems"][0]["field"] == query.partition("=")[0]
