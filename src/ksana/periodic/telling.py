"""The log lines of the scheduler: the texts and fields of its document, all of component `scheduler`."""

from __future__ import annotations

import logging
from typing import Any

_log = logging.getLogger("ksana.scheduler")


def debug(message: str, **fields: Any) -> None:
    _tell(logging.DEBUG, message, fields)


def info(message: str, **fields: Any) -> None:
    _tell(logging.INFO, message, fields)


def error(message: str, **fields: Any) -> None:
    _tell(logging.ERROR, message, fields)


def failure(message: str, **fields: Any) -> None:
    """An error nobody has foreseen, with its traceback."""
    _tell(logging.ERROR, message, fields, exc_info=True)


def _tell(level: int, message: str, fields: dict[str, Any], exc_info: bool = False) -> None:
    _log.log(level, message, extra={"fields": {"component": "scheduler", **fields}}, exc_info=exc_info)
