"""What surfaces are given to work with."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

import msgspec

from ksana.api.quarters import QuarterSums
from ksana.domain.items import Rates
from ksana.domain.policies import OnUncertain, Retry, Timeouts
from ksana.engine.engine import Engine


class JobDefaults(msgspec.Struct, frozen=True):
    """What a job gets when it does not say, from the settings.

    `max_retries` is None while the settings leave the number to each surface.
    """

    retry: Retry = Retry()
    timeouts: Timeouts = Timeouts()
    on_uncertain: OnUncertain = OnUncertain.RETRY
    timezone: str = "UTC"
    seconds_field: bool = True
    max_retries: int | None = None


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """A setting as it may be shown: secrets are hidden. `env` are the variables that set it."""

    name: str
    value: str
    source: str
    env: tuple[str, ...]
    description: str


class StoreFacts(msgspec.Struct, frozen=True):
    """What kind of store there is, and how many bytes it takes up, as far as that can be told at once."""

    kind: str = ""
    size: Callable[[], int | None] = lambda: None


@dataclass(frozen=True, slots=True)
class Services:
    """The engine, and what only the composition of the program knows."""

    engine: Engine
    version: str
    defaults: JobDefaults
    metrics: Callable[[], Awaitable[tuple[bytes, str]]] | None
    """Renders the metrics; None when they are switched off."""
    callback_by_ids: bool = True
    """Whether a callback may name task and run in place of a token."""
    is_exposed: bool = False
    """Whether the server listens beyond loopback."""
    queue_rates: Callable[[], Rates] = field(default=lambda: Rates(0.0, 0.0))
    """How the items of the queue fare on this node."""
    settings: Sequence[Setting] = ()
    """Every setting of this node, with its source."""
    store: StoreFacts = field(default_factory=StoreFacts)
    quarters: QuarterSums = field(default_factory=QuarterSums)
    """What the heat map has read already."""
