"""Small rising ids, reserved before anything is written, so that answers and links can be made before the commit."""

from __future__ import annotations

from ksana.stores.sql.statements import ADVANCE_SEQUENCE, READ_SEQUENCE
from ksana.stores.sql.tx import Tx


async def reserve(tx: Tx, what: str, count: int) -> range:
    # The update comes first: it locks the row, so nobody reads the same number.
    await tx.run(ADVANCE_SEQUENCE, name=what, count=count)
    [(after,)] = await tx.rows(READ_SEQUENCE, name=what)
    return range(after - count, after)
