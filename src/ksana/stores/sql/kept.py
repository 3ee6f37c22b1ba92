"""What is kept of runs for others: the artifact one hands on, and the checkpoint it leaves to its next attempt."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ksana.domain.moves import Kept
from ksana.stores.sql.rows import Row
from ksana.stores.sql.statements import DROP_KEPT, KEPT_OF_RUNS, LOCK_KEPT, RUNS_AT_EPOCH
from ksana.stores.sql.tables import KEPT
from ksana.stores.sql.tx import Tx

_ARTIFACTS = KEPT.only("run_id", "artifact")
_CHECKPOINTS = KEPT.only("run_id", "checkpoint")


async def keep(tx: Tx, rows: Sequence[tuple[Any, ...]]) -> None:
    """Keep what is given; what is not given stays as it was."""
    if await tx.insert_new(KEPT, rows) == len(rows):
        return
    await tx.rows(LOCK_KEPT, ids=[row[0] for row in rows])
    if artifacts := [(run_id, artifact) for run_id, artifact, _ in rows if artifact is not None]:
        await tx.update(_ARTIFACTS, artifacts)
    if checkpoints := [(run_id, checkpoint) for run_id, _, checkpoint in rows if checkpoint is not None]:
        await tx.update(_CHECKPOINTS, checkpoints)


async def keep_checkpoint(tx: Tx, run_id: int, epoch: int, checkpoint: bytes) -> bool:
    if not await tx.rows(RUNS_AT_EPOCH, ids=[run_id], epoch=epoch):
        return False
    await keep(tx, [(run_id, None, checkpoint)])
    return True


async def kept(tx: Tx, run_ids: Iterable[int]) -> dict[int, Kept]:
    ids = list(run_ids)
    return {row[0]: kept_from_row(row) for row in await tx.rows(KEPT_OF_RUNS, ids=ids)} if ids else {}


async def forget_kept(tx: Tx, run_ids: Sequence[int]) -> None:
    await tx.run(DROP_KEPT, ids=run_ids)


def kept_from_row(row: Row) -> Kept:
    run_id, artifact, checkpoint = row
    return Kept(
        run_id=run_id,
        artifact=None if artifact is None else bytes(artifact),
        checkpoint=None if checkpoint is None else bytes(checkpoint),
    )


def kept_to_row(kept: Kept) -> tuple[Any, ...]:
    return (kept.run_id, kept.artifact, kept.checkpoint)
