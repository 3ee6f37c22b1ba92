"""What differs between two values."""

from __future__ import annotations

from typing import Any

import pytest

from ksana.domain.differences import differences


@pytest.mark.parametrize(
    ("left", "right", "found"),
    [
        ({"a": 1}, {"a": 1}, []),
        (1, 2, [("", 1, 2)]),
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": 3, "c": 2}}, [("a.b", 1, 3)]),
        ({"gone": 1}, {"new": 2}, [("gone", 1, None), ("new", None, 2)]),
        ({"l": [1, 2]}, {"l": [1, 3, 4]}, [("l[1]", 2, 3), ("l[2]", None, 4)]),
        ([[1], [2]], [[1], [5]], [("[1][0]", 2, 5)]),
        ({"a": {"b": 1}}, {"a": 2}, [("a", {"b": 1}, 2)]),
        (True, 1, [("", True, 1)]),
        ("1", 1, [("", "1", 1)]),
        (None, None, []),
    ],
)
def test_differences_are_told_by_their_place(left: Any, right: Any, found: list[tuple[str, Any, Any]]) -> None:
    assert differences(left, right) == found


def test_the_order_is_that_of_the_left_side() -> None:
    assert [one.path for one in differences({"b": 1, "a": 1}, {"a": 2, "b": 2, "c": 2})] == ["b", "a", "c"]


def test_no_more_are_told_than_wanted() -> None:
    assert len(differences(list(range(1000)), [None] * 1000, most=7)) == 7


def test_depth_is_no_trouble() -> None:
    left: Any = 1
    right: Any = 2
    for _ in range(5000):
        left, right = {"a": left}, {"a": right}
    [found] = differences(left, right)
    assert (found.left, found.right, found.path.count(".")) == (1, 2, 4999)
