"""A program that copies a store and ends as by a power cut in the midst of a page: FROM, TO and which page."""

import asyncio
import os
import signal
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from ksana.domain.archive import Section
from ksana.stores.copy import copy
from ksana.stores.open import open_store

PAGE = 2


async def main(source_url: str, target_url: str, fatal: int) -> None:
    source, target = open_store(source_url), open_store(target_url)
    await source.open()
    await target.open()
    restore, pages = target.restore, 0

    async def dying(section: Section, items: Sequence[Any]) -> int:
        nonlocal pages
        pages += 1
        writing = asyncio.create_task(restore(section, items))
        if pages == fatal:
            # The step is under way by now, and nobody knows how far.
            await asyncio.sleep(0)
            os.kill(os.getpid(), signal.SIGKILL)
        return await writing

    target.restore = dying  # type: ignore[method-assign]
    await copy(source, target, datetime(2030, 1, 1, 12, tzinfo=UTC), lambda progress: None, page=PAGE)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
