"""The description against the running app: schemathesis makes the requests, valid and not."""

from __future__ import annotations

from typing import Any

import schemathesis
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    negative_data_rejection,
    response_schema_conformance,
    status_code_conformance,
)

from tests.api.kit.honesty import random_requests, schema_of
from tests.api.kit.sample import sample_app

# The surfaces are tried at every boundary of their schemas; here a few requests show that the kit holds its word.
_schema = schema_of(sample_app(allowed_hosts=["*"]), at_boundaries=False)


@_schema.parametrize()
@random_requests(15)
def test_the_app_does_what_its_description_says(case: schemathesis.Case[Any]) -> None:
    case.call_and_validate(
        checks=[
            not_a_server_error,
            response_schema_conformance,
            status_code_conformance,
            negative_data_rejection,
        ]
    )
