"""The pictures of the documents are there, whole and not too heavy; `make pictures` takes them."""

import struct

import pytest

from tests.browser.pictures import LARGEST, NAMES, PLACE, SIZE

PNG = b"\x89PNG\r\n\x1a\n"


@pytest.mark.parametrize("name", NAMES)
def test_a_picture_is_there(name: str) -> None:
    data = (PLACE / f"{name}.png").read_bytes()
    assert data.startswith(PNG)
    assert struct.unpack(">II", data[16:24]) == SIZE
    assert data.endswith(b"IEND\xaeB`\x82")
    assert len(data) < LARGEST


def test_no_picture_is_left_over() -> None:
    assert sorted(path.stem for path in PLACE.glob("*.png")) == sorted(NAMES)
