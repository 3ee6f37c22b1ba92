"""What is kept of runs for others: the artifact one hands on, and the checkpoint it leaves to its next attempt."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from typing import Any

from ksana.domain.moves import Kept
from ksana.stores.redis.link import Link
from ksana.stores.redis.scripts import GET_KEPT, KEEP_CHECKPOINT


async def keep_checkpoint(link: Link, run_id: int, epoch: int, checkpoint: bytes) -> bool:
    return bool(await link.run(KEEP_CHECKPOINT, run_id, epoch, checkpoint))


async def kept(link: Link, run_ids: Iterable[int]) -> dict[int, Kept]:
    ids = list(dict.fromkeys(run_ids))
    reply = await link.run(GET_KEPT, *ids) if ids else []
    found = zip(reply[::3], reply[1::3], reply[2::3], strict=True)
    return {
        int(id): Kept(run_id=int(id), artifact=artifact, checkpoint=checkpoint) for id, artifact, checkpoint in found
    }


def kept_args(one: Kept) -> Sequence[Any]:
    """What is kept of a run, as it is restored."""
    args: list[Any] = [one.run_id]
    for part in (one.artifact, one.checkpoint):
        args += (int(part is not None), part or b"")
    return args


def kept_from_value(name: bytes, value: bytes) -> Kept:
    """What is kept of a run, as it is exported: which of the two there are, and the length of the first."""
    [length] = struct.unpack_from("<I", value, 2)
    artifact, checkpoint = value[6 : 6 + length], value[6 + length :]
    return Kept(
        run_id=int(name),
        artifact=artifact if value[:1] == b"1" else None,
        checkpoint=checkpoint if value[1:2] == b"1" else None,
    )
