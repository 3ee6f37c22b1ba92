"""Conditions of a search, gathered one by one."""

from __future__ import annotations

from typing import Any


class Where:
    """Conditions that all must hold, with their values."""

    def __init__(self, *conditions: str) -> None:
        self._conditions = list(conditions)
        self.values: dict[str, Any] = {}

    def add(self, condition: str, **values: Any) -> None:
        self._conditions.append(condition)
        self.values.update(values)

    def __str__(self) -> str:
        return f" WHERE {' AND '.join(self._conditions)}" if self._conditions else ""
