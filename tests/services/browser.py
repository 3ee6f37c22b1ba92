"""Finds a Chromium for the tests of the console: named by the environment, else Debian's, else installed."""

import shutil
from collections.abc import Callable

from tests.services.install import install, why_not_installing
from tests.services.provide import OFF, Found
from tests.services.service import AdmissionError

VARIABLE = "KSANA_CHROMIUM"
_USUAL = "/usr/bin/chromium"
_PACKAGE = "chromium"


def find_chromium(named: str | None, say: Callable[[str], None], usual: str = _USUAL) -> Found:
    """Where it is, as `Found.url`, and how it came about."""
    if named == OFF:
        return Found(None, f"{VARIABLE}={OFF}")
    if named:
        # A browser asked for by name and silently replaced would test something else than what was asked.
        if shutil.which(named) is None:
            raise AdmissionError(f"{VARIABLE}={named}: there is no such program")
        return Found(named, VARIABLE)
    if shutil.which(usual) is not None:
        return Found(usual, usual)
    reason = why_not_installing() or install([_PACKAGE], say)
    if reason is not None:
        return Found(None, f"there is no {usual}, and {VARIABLE} names no other; {reason}")
    return Found(usual, "installed for this run")
