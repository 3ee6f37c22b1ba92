"""How schemathesis tries a description: with what it allows, and with what it does not."""

from __future__ import annotations

from typing import Any

import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.config import SchemathesisConfig
from schemathesis.generation.modes import GenerationMode
from schemathesis.schemas import BaseSchema


def schema_of(app: Any, *, at_boundaries: bool = True) -> BaseSchema:
    """The description that an app gives of itself, to be tried at every boundary of its schemas."""
    config = SchemathesisConfig()
    config.projects.default.generation.update(modes=[GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
    coverage = config.projects.default.phases.coverage
    coverage.enabled = at_boundaries
    # The router refuses other methods, for every path alike.
    coverage.unexpected_methods = set()
    return schemathesis.openapi.from_asgi("/openapi.json", app, config=config)


def random_requests(most: int) -> settings:
    """So many more for each operation, the same every time."""
    return settings(
        max_examples=most, deadline=None, database=None, derandomize=True, suppress_health_check=list(HealthCheck)
    )
