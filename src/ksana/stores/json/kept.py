"""What is kept of runs for others: the artifact one hands on, and the checkpoint it leaves to its next attempt."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from ksana.domain.moves import Kept
from ksana.stores.json.tables import Tables
from ksana.stores.json.tx import Tx


def keep(tx: Tx, run_id: int, artifact: bytes | None, checkpoint: bytes | None) -> None:
    """Keep what is given; what is not given stays as it was."""
    given = {"artifact": artifact, "checkpoint": checkpoint}
    given = {name: value for name, value in given.items() if value is not None}
    if given:
        before = tx.tables.kept.get(run_id) or Kept(run_id=run_id)
        tx.put(tx.tables.kept, run_id, msgspec.structs.replace(before, **given))


def keep_checkpoint(tx: Tx, run_id: int, epoch: int, checkpoint: bytes) -> bool:
    run = tx.tables.runs.get(run_id)
    if run is None or run.epoch != epoch:
        return False
    keep(tx, run_id, None, checkpoint)
    return True


def kept(tables: Tables, run_ids: Iterable[int]) -> dict[int, Kept]:
    rows = tables.kept.rows
    return {run_id: rows[run_id] for run_id in run_ids if run_id in rows}
