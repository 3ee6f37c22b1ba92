"""A table of immutable values in memory."""

from __future__ import annotations

from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Table(Generic[K, V]):
    """Values by key. A subclass keeps its indexes in step with what enters and leaves."""

    def __init__(self) -> None:
        self.rows: dict[K, V] = {}

    def get(self, key: K) -> V | None:
        return self.rows.get(key)

    def set(self, key: K, value: V | None) -> None:
        """Put a value under its key, or with None take it away."""
        old = self.rows.get(key)
        if old is not None:
            self._leave(key, old)
        if value is None:
            self.rows.pop(key, None)
        else:
            self.rows[key] = value
            self._enter(key, value)

    def _enter(self, key: K, value: V) -> None:
        """A value has come; index it."""

    def _leave(self, key: K, value: V) -> None:
        """A value goes; forget where it stood."""
