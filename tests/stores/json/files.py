"""A directory with a JSON store in it, as a test looks at it from outside."""

import json
from pathlib import Path
from typing import Any

from ksana.domain.jobs import Job, TargetSpec
from ksana.domain.policies import Misfire, MisfireRule, Overlap, OverlapRule, Retry
from ksana.domain.schedules import Every
from ksana.stores.json.store import JsonStore
from tests.stores.builders import HOUR, MINUTE, NOW, a_job

EMPTY_KEYS = {"version", "updated_at", "jobs"}
DOCUMENTED_KEYS = [
    *("id", "name", "enabled", "type", "http", "schedule", "timeout", "max_retries", "retry_backoff"),
    *("last_run_at", "next_run_at", "last_status", "last_error"),
]


class Place:
    """The directory, its files, and stores on it whose clock stands still."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.file = path / "jobs.json"
        self.now = NOW

    def store(self) -> JsonStore:
        return JsonStore(self.path, lambda: self.now)

    def read(self) -> dict[str, Any]:
        read: dict[str, Any] = json.loads(self.file.read_text())
        return read

    def entry(self, ref: str) -> dict[str, Any]:
        [found] = [entry for entry in self.read()["jobs"] if entry["id"] == ref]
        return dict(found)

    def write(self, document: Any) -> None:
        self.path.mkdir(exist_ok=True)
        self.file.write_text(document if isinstance(document, str) else json.dumps(document, indent=2))

    def write_jobs(self, *entries: Any) -> None:
        self.write({"version": 1, "updated_at": "2030-01-01T00:00:00Z", "jobs": list(entries)})

    def edit(self, ref: str, **fields: Any) -> None:
        """Change fields of a job as somebody with an editor would."""
        document = self.read()
        [entry] = [entry for entry in document["jobs"] if entry["id"] == ref]
        entry.update(fields)
        self.write(document)

    @property
    def names(self) -> set[str]:
        return {path.name for path in self.path.iterdir()}


def http(**said: Any) -> TargetSpec:
    values = {"method": "GET", "url": "https://example.com/ping", "headers": {"X-Token": "abc"}, "mode": "sync"}
    return TargetSpec("http", values | said)


def a_timer(id: int, **said: Any) -> Job:
    """A job as `/jobs` makes it: every five minutes, next in an hour."""
    values: dict[str, Any] = {
        "surface": "jobs",
        "ref": f"timer-{id}",
        "target": http(),
        "schedule": Every(every=5 * MINUTE, origin_at=NOW),
        "overlap": Overlap(OverlapRule.SKIP, 1),
        "misfire": Misfire(MisfireRule.SKIP),
        "retry": Retry(4),
        "next_slot_at": NOW + HOUR,
        "next_fire_at": NOW + HOUR,
    }
    return a_job(id, **(values | said))


def an_entry(**fields: Any) -> dict[str, Any]:
    """A job as somebody would write it by hand, after the document's example."""
    entry: dict[str, Any] = {
        "id": "by-hand",
        "name": "ping service",
        "enabled": True,
        "type": "http",
        "http": {"method": "GET", "url": "https://example.com/ping", "headers": {"X-Token": "abc"}, "body": ""},
        "schedule": {"kind": "every", "every": "5m", "start_at": "", "jitter": "0s"},
        "timeout": "10s",
        "max_retries": 3,
        "retry_backoff": "5s",
        "last_run_at": "",
        "next_run_at": "",
        "last_status": "",
        "last_error": "",
    }
    return entry | fields
