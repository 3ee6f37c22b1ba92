"""What can go wrong here, under this surface's codes and statuses: nothing is ever a 404, and a taken name is a wrong
argument."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from ksana.api.kit.errors import ApiError
from ksana.domain.errors import AlreadyExists, InvalidArgument, Problem, VersionConflict


class ChainNotFound(ApiError):
    """No chain has that id."""

    code = "CHAIN_NOT_FOUND"
    http_status = 400

    def __init__(self, chain_id: str) -> None:
        super().__init__(f"chain not found: {chain_id}")


class RunNotFound(ApiError):
    """No run of a chain has that id."""

    code = "RUN_NOT_FOUND"
    http_status = 400

    def __init__(self, run_id: str) -> None:
        super().__init__(f"run not found: {run_id}")


class NodeNotFound(ApiError):
    """The run has no such node."""

    code = "NODE_NOT_FOUND"
    http_status = 400

    def __init__(self, node_id: str) -> None:
        super().__init__(f"node not found: {node_id}")


class NameTaken(ApiError):
    """Another chain has that name."""

    code = "ALREADY_EXISTS"
    http_status = 400

    def __init__(self, name: str) -> None:
        super().__init__(f"chain name already exists: {name}", [Problem("name", "is taken by another chain")])


class ChainDisabled(ApiError):
    """The chain is switched off."""

    code = "CHAIN_DISABLED"
    http_status = 409

    def __init__(self, name: str) -> None:
        super().__init__(f"chain is disabled: {name}")


# Whether the engine or this surface looks at the graph, its fields are named alike.
_OF_THE_DAG: Final = frozenset({"params", "timeout", "maxParallel", "failFast"})
_FIELDS: Final = {
    "schedule.expr": "schedule.cron",
    "schedule.run_at": "schedule.at",
    "misfire.limit": "catchUpLimit",
    "overlap.max_concurrency": "maxConcurrency",
}


@contextmanager
def in_these_words(name: str) -> Iterator[None]:
    """What the core finds wrong with the chain of this name, as whoever wrote the request knows it."""
    try:
        yield
    except InvalidArgument as error:
        raise InvalidArgument(Problem(_field(field), message) for field, message in error.problems) from None
    except AlreadyExists:
        raise NameTaken(name) from None
    except VersionConflict:
        raise VersionConflict("chain version conflict or not found") from None


def _field(field: str) -> str:
    if field in _OF_THE_DAG or field.startswith(("target.", "nodes")):
        return f"dagJson.{field.removeprefix('target.')}"
    return _FIELDS.get(field, field)
