"""The text of `jobs.json`, kept entry by entry, so that a change costs the encoding of what changed and one joining."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec

from ksana.domain.times import format_instant

VERSION = 1

JOBS = "jobs"
OTHER_JOBS = "other_jobs"
RUNS = "runs"
KEPT = "kept"
KEYS = "keys"
IDEMPOTENCY = "idempotency"
ALERTS = "alerts"
OBJECTS = "objects"
QUEUES = "queues"
BUCKETS = "buckets"
UNREADABLE = "unreadable"
STORE = "store"
HISTORY = "history"

LISTS = (JOBS, OTHER_JOBS, RUNS, KEPT, KEYS, IDEMPOTENCY, ALERTS, OBJECTS, QUEUES, BUCKETS, UNREADABLE)
KNOWN = frozenset({"version", "updated_at", *LISTS, STORE, HISTORY})

Entries = Mapping[tuple[str, Any], bytes | None]


class Document:
    """The entries of every list by their keys, and the two objects that stand alone."""

    def __init__(self) -> None:
        self._lists: dict[str, dict[Any, bytes]] = {name: {} for name in LISTS}
        self._objects: dict[str, bytes] = {}

    def apply(self, entries: Entries) -> Entries:
        """Take the entries over, None for one that is gone; answer what undoes it."""
        before: dict[tuple[str, Any], bytes | None] = {}
        for (name, key), text in entries.items():
            held = self._lists.get(name, self._objects)
            if name not in self._lists:
                key = name
            before[name, key] = held.get(key)
            if text is None:
                held.pop(key, None)
            else:
                held[key] = text
        return before

    def chunks(self, updated_at: datetime, history: Any) -> list[bytes]:
        """The whole file, in pieces. Lists and objects that are empty are left out, except the jobs."""
        head = b'{\n  "version": %d,\n  "updated_at": "%s"' % (VERSION, format_instant(updated_at, "seconds").encode())
        chunks = [head]
        for name in LISTS:
            if self._lists[name] or name == JOBS:
                chunks += _list(name, self._lists[name])
        objects = dict(self._objects)
        if history is not None:
            objects[HISTORY] = msgspec.json.encode(history)
        chunks += [b',\n  "%s": %s' % (name.encode(), text) for name, text in objects.items()]
        return [*chunks, b"\n}\n"]


def _list(name: str, entries: dict[Any, bytes]) -> list[bytes]:
    if not entries:
        return [b',\n  "%s": []' % name.encode()]
    # The one time that the text of all entries is copied.
    return [b',\n  "%s": [\n    ' % name.encode(), b",\n    ".join(entries.values()), b"\n  ]"]
