from __future__ import annotations

from typing import Any

import pytest

from ksana.domain.errors import InvalidArgument, Problem
from ksana.targets.checks import did_you_mean, not_json, refuse, unknown_fields


def test_an_unknown_field_is_named_with_what_was_probably_meant() -> None:
    [problem] = unknown_fields("fax", {"number": 1, "pagse": 2}, ("number", "pages"))
    assert problem == Problem(
        "pagse", "is not a field of the fax target; it takes number, pages; did you mean 'pages'?"
    )


def test_known_fields_are_no_problem() -> None:
    assert unknown_fields("fax", {"number": 1}, ("number", "pages")) == []


def test_a_config_that_is_no_map_is_refused() -> None:
    not_a_map: Any = ["number", 1]
    with pytest.raises(InvalidArgument, match="is a map of fields, not list"):
        unknown_fields("fax", not_a_map, ("number",))


def test_nothing_similar_is_not_guessed_at() -> None:
    assert did_you_mean("colour", ["number", "pages"]) == ""


@pytest.mark.parametrize("value", [object(), {"a": {1, object()}}, "\ud800"])
def test_what_json_cannot_hold_is_a_problem(value: object) -> None:
    assert [problem.field for problem in not_json("body", value)] == ["body"]


def test_refusing_names_fields_as_the_author_of_a_job_wrote_them() -> None:
    with pytest.raises(InvalidArgument) as refused:
        refuse([Problem("pages", "must be at least 1"), Problem("number", "is missing")])
    assert [problem.field for problem in refused.value.problems] == ["target.pages", "target.number"]


def test_no_problem_is_no_refusal() -> None:
    refuse([])
