"""What was set for queues."""

from __future__ import annotations

from ksana.domain.audit import AuditEntry
from ksana.domain.errors import VersionConflict
from ksana.domain.items import shown_queue
from ksana.domain.limits import QueueSettings
from ksana.stores.redis.governed_values import entry_args, settings_from_value, settings_to_value
from ksana.stores.redis.link import Link
from ksana.stores.redis.scripts import SET_QUEUE
from ksana.stores.redis.values import fitting


async def queue_settings(link: Link) -> list[QueueSettings]:
    found = map(settings_from_value, await link.ask("HVALS", link.key("settings")))
    return sorted(found, key=lambda settings: settings.queue)


async def set_queue(link: Link, settings: QueueSettings, entry: AuditEntry) -> None:
    below = settings.version - 1
    with fitting():
        args = (settings.queue, below, settings_to_value(settings), *entry_args(entry))
    version = await link.run(SET_QUEUE, *args)
    if version is not None:
        raise VersionConflict(
            f"what is set for queue {shown_queue(settings.queue)} is at version {version}, not {below};"
            " read it again and repeat the change"
        )
