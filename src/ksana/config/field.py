"""What is known of one setting, and how a value it refuses is reported."""

from __future__ import annotations

import msgspec

from ksana.config.kinds import Kind, Raw, RefusedError
from ksana.config.urls import mask_url
from ksana.domain.errors import Problem


class Field(msgspec.Struct, frozen=True):
    """One setting. `env` and `bare` stand in order of precedence; `also` are further YAML keys for it."""

    key: str
    kind: Kind
    meaning: str
    env: tuple[str, ...]
    bare: tuple[str, ...] = ()
    flag: str = ""
    also: tuple[str, ...] = ()
    default: str = ""
    secret: bool = False

    @property
    def keys(self) -> tuple[str, ...]:
        return (self.key, *self.also)

    def problem(self, raw: Raw, source: str, refusal: RefusedError) -> Problem:
        """What is wrong with a value, where it came from and what would be right."""
        reason = f" ({refusal})" if str(refusal) else ""
        return Problem(self.key, f"{self._shown(raw)} from {source} is not valid{reason}; give {self.kind.allowed}")

    def _shown(self, raw: Raw) -> str:
        if not self.secret:
            return repr(raw)
        return repr(mask_url(raw)) if self.key == "storage.url" and isinstance(raw, str) else "the value"
