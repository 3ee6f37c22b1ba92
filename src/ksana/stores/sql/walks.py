"""Walks through whole tables in the order of their keys, page by page, for copies between stores."""

from __future__ import annotations

from typing import NamedTuple

from ksana.stores.sql.statements import (
    ATTEMPT_COLUMNS,
    ATTEMPT_SOURCE,
    JOB_COLUMNS,
    JOB_SOURCE,
    LAST_ATTEMPT_COLUMNS,
    LAST_ATTEMPT_SOURCE,
    Statement,
)
from ksana.stores.sql.tables import Table


class Leg(NamedTuple):
    """One stretch of a walk: how large the next rows are, in bytes, and the rows themselves."""

    weigh: Statement
    read: Statement


class Walk(NamedTuple):
    """A table from end to end by its key, whose columns `onward` takes as :key0, :key1 …

    One leg per column, from the rows that differ only in the last one to those that differ in the first: every
    database finds each in its index, which none of them does for a comparison of all columns at once.
    """

    start: Leg
    onward: tuple[Leg, ...]
    size: Statement
    last: Statement


def _walk(shown: str, source: str, keys: tuple[str, ...], large: tuple[str, ...], only: tuple[str, ...] = ()) -> Walk:
    weight = " + ".join(["0", *(f"COALESCE(LENGTH({column}), 0)" for column in large)])

    def leg(depth: int, *conditions: str) -> Leg:
        where = _where(*only, *conditions)
        rest = f"{source}{where} ORDER BY {', '.join(keys[depth:])} LIMIT :limit"
        return Leg(Statement(f"SELECT {weight} {rest}"), Statement(f"SELECT {shown} {rest}"))

    same = [f"{key} = :key{depth}" for depth, key in enumerate(keys)]
    return Walk(
        leg(0),
        tuple(leg(depth, *same[:depth], f"{keys[depth]} > :key{depth}") for depth in reversed(range(len(keys)))),
        Statement(f"SELECT COUNT(*) {source}{_where(*only)}"),
        Statement(f"SELECT {', '.join(keys)} {source}{_where(*only)} ORDER BY {' DESC, '.join(keys)} DESC LIMIT 1"),
    )


def _where(*conditions: str) -> str:
    return f" WHERE {' AND '.join(conditions)}" if conditions else ""


def walk(table: Table, *keys: str, large: tuple[str, ...] = ()) -> Walk:
    """All of a table by its key; `large` names the columns that may hold much."""
    return _walk(", ".join(table.names), f"FROM {table.name}", keys, large)


WALK_JOBS = _walk(JOB_COLUMNS, JOB_SOURCE, ("j.id",), ("j.definition",))
WALK_ATTEMPTS = _walk(
    ATTEMPT_COLUMNS,
    ATTEMPT_SOURCE,
    ("a.run_id", "a.epoch"),
    ("a.error", "a.result", "e.request_body", "e.response_body"),
)
WALK_LAST_ATTEMPTS = _walk(
    LAST_ATTEMPT_COLUMNS,
    LAST_ATTEMPT_SOURCE,
    ("r.id",),
    ("r.last_attempt", "e.request_body", "e.response_body"),
    only=("r.last_attempt IS NOT NULL",),
)
