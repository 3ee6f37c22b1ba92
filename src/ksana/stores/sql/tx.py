"""What a step may do inside one transaction. Each driver implements this once; every verb is written on it once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

from ksana.domain.claims import Claim
from ksana.stores.sql.dialects import Dialect
from ksana.stores.sql.rows import Row
from ksana.stores.sql.statements import Statement
from ksana.stores.sql.tables import Table

T = TypeVar("T")

Told = dict[int, tuple[Any, ...] | None]
"""Runs with what the row of each is to tell of the attempt that ended it, as attempt_rows.last_attempt_of puts it."""


class Ended(NamedTuple):
    """How one run ends: `values` are what `end` is given. An attempt that its row cannot tell of has a row of its own,
    and so has what is kept of the run for others."""

    told: Told
    epoch: int
    values: dict[str, Any]
    attempt: Row | None
    kept: Row | None


class Relay(NamedTuple):
    """The end of a step with what follows from it, if the family's stamp is still the known one: a new stamp, and heirs
    that are let in and claimed; `passes` are steps in between that do nothing and are done."""

    parent_id: int
    known_stamp: int
    stamp: int
    ended: Ended
    heirs: list[int]
    passes: list[int]
    claim: Claim


class Relayed(NamedTuple):
    """The heirs as `Tx.claim` answers them, and whole rows of the steps that were done by the way."""

    heirs: list[Row]
    passed: list[Row]


class Tx(Protocol):
    """One open transaction.

    The methods are coroutines for the sake of the network drivers; SQLite's never suspend, so the same verbs run to
    their end on its writer thread.
    """

    async def rows(self, statement: Statement, /, **values: Any) -> list[tuple[Any, ...]]:
        """Run a query and answer all its rows."""
        ...

    async def run(self, statement: Statement, /, **values: Any) -> int:
        """Run a change and answer how many rows it touched."""
        ...

    async def insert(self, table: Table, rows: Sequence[tuple[Any, ...]]) -> None:
        """Add rows. UniqueViolation if one collides."""
        ...

    async def insert_new(self, table: Table, rows: Sequence[tuple[Any, ...]]) -> int:
        """Add the rows that collide with nothing and answer how many those were."""
        ...

    async def update(self, table: Table, rows: Sequence[tuple[Any, ...]]) -> None:
        """Overwrite the given columns of rows that are there and locked by this transaction; the first column is the
        key. UniqueViolation if another of their unique columns collides."""
        ...

    async def swap(self, change: Statement, /, ids: Sequence[int], epoch: int, **values: Any) -> list[int]:
        """Make one change to those of the runs that are still at this epoch, and answer which they were."""
        ...

    async def claim(self, claim: Claim) -> list[Row]:
        """Take the next due runs; answer their rows as they were before, with the columns of DUE_COLUMNS."""
        ...

    async def hand_over(self, run_ids: Sequence[int], due_at: int, claim: Claim) -> list[Row]:
        """Let steps in that wait and claim them at once, as far as they are of the claim's queues; answer their rows as
        `claim` would."""
        ...

    async def pass_on(self, relay: Relay) -> Relayed | None:
        """Carry a relay out; None if the stamp or the epoch no longer stands, and then nothing was changed but the
        stamp."""
        ...

    async def stamp(self, run_ids: Sequence[int], stamp: int) -> list[tuple[Any, ...]]:
        """Lock the chains of these runs, as far as they are chains, and leave a new stamp; answer (run, old stamp)."""
        ...

    async def end(self, told: Told, epoch: int, **values: Any) -> Collection[int]:
        """End those of the runs that are still at this epoch, each told by the attempt that ended it, and answer which
        they were."""
        ...


class UniqueViolation(Exception):
    """A row collides with one that is there."""


Step = Callable[[Tx], Awaitable[T]]


class Database(Protocol):
    """A database and its connections."""

    dialect: Dialect
    parallelism: int
    changes_at_once: bool
    """Whether one statement may make several changes and tell what it found, so that a pull or an ordinary turn is
    no more than that."""
    writes_alone: bool
    """Whether nobody else, in whichever process, changes anything while a step that writes is under way."""

    async def open(self) -> None:
        """Connect and check what the promises rest on."""
        ...

    async def close(self) -> None: ...

    async def write(self, step: Step[T]) -> T:
        """Run the step in a transaction of its own and commit it. StoreUnavailable if the database is out of reach."""
        ...

    async def single(self, step: Step[T]) -> T:
        """The same for a step that makes one call of `Tx`, and that none which needs two statements here."""
        ...

    async def read(self, step: Step[T]) -> T:
        """Run a step that changes nothing."""
        ...

    async def exclusive(self, step: Step[T]) -> T:
        """Run the step while no other process runs one under the same name; for migrations."""
        ...
