from __future__ import annotations

import pytest

from ksana.api.kit.errors import PreconditionFailed
from ksana.api.kit.etag import etag, parse_if_match
from ksana.domain.errors import InvalidArgument
from tests.api.kit.client import Client
from tests.api.kit.sample import sample_app


def test_a_version_and_its_tag_are_one() -> None:
    assert etag(3) == '"3"'
    assert parse_if_match(etag(3)).expected() == 3


def test_a_star_matches_every_version() -> None:
    condition = parse_if_match(" * ")
    assert condition.expected() is None
    condition.require(7)


def test_one_of_several_tags_is_enough_but_a_change_needs_one() -> None:
    condition = parse_if_match('"2", "3"')
    condition.require(3)
    with pytest.raises(PreconditionFailed):
        condition.require(4)
    with pytest.raises(InvalidArgument):
        condition.expected()


@pytest.mark.parametrize("text", ['W/"3"', '"x"', '""', '"03"', '"-1"', '"99999999999999999999"'])
def test_a_weak_or_foreign_tag_never_matches(text: str) -> None:
    with pytest.raises(PreconditionFailed):
        parse_if_match(text).expected()
    with pytest.raises(PreconditionFailed):
        parse_if_match(text).require(3)


@pytest.mark.parametrize("text", ["", "3", '"3', '"3",', "**", '"3" "4"'])
def test_what_is_no_tag_is_refused(text: str) -> None:
    with pytest.raises(InvalidArgument):
        parse_if_match(text)


async def test_a_change_for_an_old_version_is_412_by_header() -> None:
    client = Client(sample_app())
    made = await client.post("/things", {"name": "a"})
    tag = {"If-Match": made.headers["etag"]}
    assert (await client.call("PUT", "/things/1", json_body={"name": "b"}, headers=tag)).status == 200
    stale = await client.call("PUT", "/things/1", json_body={"name": "c"}, headers=tag)
    assert (stale.status, stale.json()["code"]) == (412, "VERSION_CONFLICT")
    odd = await client.call("PUT", "/things/1", json_body={"name": "c"}, headers={"If-Match": "2"})
    assert odd.status == 400
    assert (await client.call("PUT", "/things/1", json_body={"name": "c"})).status == 200
