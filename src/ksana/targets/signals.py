"""Exceptions by which a function says how its attempt ended, where an ordinary one would say too little."""

from __future__ import annotations

from datetime import timedelta


class Retry(Exception):
    """Try again, after `delay` if one is given, else when the retry policy says."""

    delay: timedelta | None = None

    def __init__(self, delay: timedelta | None = None, message: str = "the function asked to be tried again") -> None:
        if delay is not None and (not isinstance(delay, timedelta) or delay < timedelta(0)):
            raise ValueError(f"Retry takes a timedelta of zero or more, such as timedelta(seconds=30), not {delay!r}")
        super().__init__(message)
        self.delay = delay


class Fail(Exception):
    """Do not try again: another attempt would end the same way."""

    def __init__(self, message: str = "the function said that trying again is no use") -> None:
        super().__init__(message)
