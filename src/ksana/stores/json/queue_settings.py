"""What was set for queues."""

from __future__ import annotations

from ksana.domain.audit import AuditEntry
from ksana.domain.errors import VersionConflict
from ksana.domain.items import shown_queue
from ksana.domain.limits import QueueSettings
from ksana.stores.json.audit import add_audit
from ksana.stores.json.tables import Tables
from ksana.stores.json.tx import Tx


def queue_settings(tables: Tables) -> list[QueueSettings]:
    return [settings for _, settings in sorted(tables.settings.rows.items())]


def set_queue(tx: Tx, settings: QueueSettings, entry: AuditEntry) -> None:
    stored = tx.tables.settings.get(settings.queue)
    version = 0 if stored is None else stored.version
    if settings.version != version + 1:
        raise VersionConflict(
            f"what is set for queue {shown_queue(settings.queue)} is at version {version}, not {settings.version - 1};"
            " read it again and repeat the change"
        )
    tx.put(tx.tables.settings, settings.queue, settings)
    add_audit(tx, [entry])
