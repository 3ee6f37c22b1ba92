"""How schemathesis tries a description: with what it allows, and with what it does not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.config import SchemathesisConfig
from schemathesis.core.result import Ok
from schemathesis.generation.feedback import FeedbackSources
from schemathesis.generation.modes import GenerationMode
from schemathesis.pytest._test_builder import build_operation_test
from schemathesis.schemas import BaseSchema

from tests.api.kit.direct import Direct

Check = Callable[[schemathesis.Case[Any], Direct], None]


def schema_of(app: Any, *, surface: str = "", at_boundaries: bool = True) -> BaseSchema:
    """The description that an app gives of itself or of one surface, to be tried at every boundary of its schemas."""
    config = SchemathesisConfig()
    config.projects.default.generation.update(modes=[GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
    coverage = config.projects.default.phases.coverage
    coverage.enabled = at_boundaries
    # The router refuses other methods, for every path alike.
    coverage.unexpected_methods = set()
    schema = schemathesis.openapi.from_asgi("/openapi.json", app, config=config)
    return schema.include(operation_id_regex=f"^{surface}_") if surface else schema


def try_all(schema: BaseSchema, check: Check, *, random: int) -> None:
    """Try every operation, with so many random requests more for each of them, the same every time. Requests are made
    up here and not while tests are collected, which every worker does for itself."""
    with Direct(schema.app) as session:
        _try_all(schema, lambda case: check(case, session), random)


def _try_all(schema: BaseSchema, check: Callable[[schemathesis.Case[Any]], None], random: int) -> None:
    operations = list(schema.get_all_operations())
    assert operations, "the description names nothing to try"
    failures = []
    for found in operations:
        assert isinstance(found, Ok)
        operation = found.ok()
        test = build_operation_test(
            config=schema.config,
            operation=operation,
            test_func=_settled(check, random),
            given_kwargs={},
            feedback=FeedbackSources(),
        )
        try:
            test()
        except Exception as error:
            error.add_note(f"tried: {operation.label}")
            failures.append(error)
    if failures:
        raise ExceptionGroup("the app does not do what its description says", failures)


def _settled(check: Callable[[schemathesis.Case[Any]], None], random: int) -> Callable[..., None]:
    def test(case: schemathesis.Case[Any]) -> None:
        check(case)

    tried = settings(
        max_examples=random, deadline=None, database=None, derandomize=True, suppress_health_check=list(HealthCheck)
    )
    return tried(test)
