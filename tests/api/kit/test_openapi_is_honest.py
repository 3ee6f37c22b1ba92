"""The description against the running app: schemathesis makes the requests, valid and not."""

from __future__ import annotations

from typing import Any

import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.checks import not_a_server_error
from schemathesis.config import SchemathesisConfig
from schemathesis.generation.modes import GenerationMode
from schemathesis.specs.openapi.checks import (
    negative_data_rejection,
    response_schema_conformance,
    status_code_conformance,
)

from tests.api.kit.sample import sample_app

_config = SchemathesisConfig()
_config.projects.default.generation.update(modes=[GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
# The surfaces are tried with every boundary of their schemas; here a few requests show that the kit holds its word.
_config.projects.default.phases.coverage.enabled = False
_schema = schemathesis.openapi.from_asgi("/openapi.json", sample_app(allowed_hosts=["*"]), config=_config)


@_schema.parametrize()
@settings(max_examples=15, deadline=None, database=None, derandomize=True, suppress_health_check=list(HealthCheck))
def test_the_app_does_what_its_description_says(case: schemathesis.Case[Any]) -> None:
    case.call_and_validate(
        checks=[
            not_a_server_error,
            response_schema_conformance,
            status_code_conformance,
            negative_data_rejection,
        ]
    )
