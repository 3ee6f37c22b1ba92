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

from tests.api.kit.direct import Direct
from tests.api.kit.honesty import schema_of, try_all
from tests.api.kit.sample import sample_app


def test_the_app_does_what_its_description_says() -> None:
    # The surfaces are tried at every boundary of their schemas; here a few requests show that the kit holds its word.
    try_all(schema_of(sample_app(allowed_hosts=["*"]), at_boundaries=False), _check, random=15)


def _check(case: schemathesis.Case[Any], session: Direct) -> None:
    case.call_and_validate(
        checks=[
            not_a_server_error,
            response_schema_conformance,
            status_code_conformance,
            negative_data_rejection,
        ],
        session=session,
    )
