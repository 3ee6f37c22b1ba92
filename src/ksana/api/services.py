"""What surfaces are given to work with."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import msgspec

from ksana.domain.policies import OnUncertain, Retry, Timeouts
from ksana.engine.engine import Engine


class JobDefaults(msgspec.Struct, frozen=True):
    """What a job gets when it does not say, from the settings."""

    retry: Retry = Retry()
    timeouts: Timeouts = Timeouts()
    on_uncertain: OnUncertain = OnUncertain.RETRY
    timezone: str = "UTC"
    seconds_field: bool = True


@dataclass(frozen=True, slots=True)
class Services:
    """The engine, and what only the composition of the program knows."""

    engine: Engine
    version: str
    defaults: JobDefaults
    metrics: Callable[[], Awaitable[tuple[bytes, str]]] | None
    """Renders the metrics; None when they are switched off."""
