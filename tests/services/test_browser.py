"""Which Chromium the tests take, and what they say when there is none."""

import sys

import pytest

from tests.services.browser import find_chromium
from tests.services.provide import Found
from tests.services.service import AdmissionError


def test_the_one_that_is_named_is_taken() -> None:
    assert find_chromium(sys.executable, _silent) == Found(sys.executable, "KSANA_CHROMIUM")


def test_a_name_that_leads_nowhere_is_not_replaced_by_another() -> None:
    with pytest.raises(AdmissionError, match="KSANA_CHROMIUM=/nowhere/chromium: there is no such program"):
        find_chromium("/nowhere/chromium", _silent)


def test_without_one_the_reason_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KSANA_TEST_INSTALL", "0")
    found = find_chromium(None, _silent, usual="/nowhere/chromium")
    assert found.url is None
    assert "KSANA_CHROMIUM names no other" in found.how
    assert "KSANA_TEST_INSTALL=0" in found.how


def test_it_can_be_switched_off() -> None:
    assert find_chromium("off", _silent) == Found(None, "KSANA_CHROMIUM=off")


def _silent(text: str) -> None:
    raise AssertionError(f"nothing was to be installed, yet it says: {text}")
