"""From the files to the tables: the history line by line, then `jobs.json` over it.

Nothing that cannot be read is thrown away: a file that does not parse is set aside, an entry that makes no sense stays
in the file with the reason.
"""

from __future__ import annotations

import logging
import random
import secrets
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from ksana.domain.alerts import Alert
from ksana.domain.archive import Standing
from ksana.domain.audit import AuditEntry
from ksana.domain.callbacks import Progress
from ksana.domain.errors import StoreUnavailable
from ksana.domain.fires import Gap
from ksana.domain.idempotency import IdempotencyRecord
from ksana.domain.jobs import Job
from ksana.domain.keys import StoredKey
from ksana.domain.limits import QueueSettings
from ksana.domain.moves import Kept
from ksana.domain.objects import GovernedObject
from ksana.domain.queries import Minute
from ksana.domain.runs import Run
from ksana.domain.standing import INVALID
from ksana.domain.states import Reason
from ksana.stores.json import document
from ksana.stores.json.disk import JOBS_FILE, PREVIOUS_FILE, Disk
from ksana.stores.json.document import Document
from ksana.stores.json.draft import encode, everything
from ksana.stores.json.entries import Circumstances, broken_entry, read_entry
from ksana.stores.json.files import set_aside, temporary_of
from ksana.stores.json.governed_tables import Bucket
from ksana.stores.json.history import History, Pointer
from ksana.stores.json.outbox import key_of as alert_key
from ksana.stores.json.tables import Place, Tables

BAD_FILE = "jobs.bad.json"
GOOD_FILE = "jobs.good.json"

_replace = msgspec.structs.replace
log = logging.getLogger(__name__)
_IDENTITY_BITS = 63
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class Loaded(NamedTuple):
    """The state of a directory."""

    tables: Tables
    disk: Disk


def load(directory: Path, now: datetime) -> Loaded:
    """Read a directory's state and write it back, so that what was made up for hand-written entries stays as it is."""
    path = directory / JOBS_FILE
    raw = _parsed(path)
    tables = Tables(secrets.randbits(_IDENTITY_BITS))
    history = _history(directory, raw.get(document.HISTORY))
    _replay(tables, history)
    pages = Document()
    _Reader(tables, pages, now).read(raw)
    pages.apply(everything(tables, now).entries())
    disk = Disk(directory, pages, history)
    disk.write({}, {}, now)
    return Loaded(tables, disk)


def _parsed(path: Path) -> dict[str, Any]:
    if not path.exists():
        return _left_behind(path)
    try:
        raw = _decoded(path)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        _give_up(path, str(error))
        return {}
    if raw.get("version", document.VERSION) != document.VERSION:
        raise StoreUnavailable(
            f"{path} is of version {raw['version']}; this program reads version {document.VERSION}. Use a newer one"
        )
    return raw


def _decoded(path: Path) -> dict[str, Any]:
    # Editors on Windows like to begin a file with a mark.
    raw = msgspec.json.decode(path.read_bytes().removeprefix(_BYTE_ORDER_MARK), type=dict[str, Any])
    if not isinstance(raw.get(document.JOBS), list):
        raise msgspec.ValidationError("there is no list `jobs` in it")
    return raw


def _left_behind(path: Path) -> dict[str, Any]:
    """What is there if `jobs.json` is not: where renaming takes two steps, dying between them leaves the new state
    under its temporary name and the old one as the previous generation. A directory never used has neither."""
    for candidate in (temporary_of(path), path.with_name(PREVIOUS_FILE)):
        try:
            return _decoded(candidate)
        except (OSError, msgspec.DecodeError, UnicodeDecodeError):
            continue
    return {}


def _give_up(path: Path, reason: str) -> None:
    """Set a file aside that is no state, and say what there is to go back to."""
    bad, good, previous = (path.with_name(name) for name in (BAD_FILE, GOOD_FILE, PREVIOUS_FILE))
    set_aside(path, bad)
    offer = "there is no previous generation of it"
    if previous.exists():
        # The next write would make it the generation before that one, which is empty.
        set_aside(previous, good)
        offer = f"its previous generation is {good}: to go back to it, stop, copy it to {path} and start again"
    log.error("%s does not parse (%s) and is now %s; starting with no jobs; %s", path, reason, bad, offer)


def _history(directory: Path, raw: Any) -> History:
    if raw is not None:
        try:
            found = History.at(directory, msgspec.convert(raw, Pointer))
        except msgspec.ValidationError:
            found = None
        if found is not None:
            return found
        log.error(
            "the history that %s points at is not in %s; what had ended before is not known", JOBS_FILE, directory
        )
    return History.fresh(directory)


class _Which(msgspec.Struct):
    """As much of an attempt as it takes to find it again."""

    run_id: int
    epoch: int


class _Word(msgspec.Struct):
    """The same of a callback."""

    run_id: int
    id: int


_DECODERS: dict[bytes, msgspec.json.Decoder[Any]] = {
    b"run": msgspec.json.Decoder(Run),
    b"attempt": msgspec.json.Decoder(_Which),
    b"callback": msgspec.json.Decoder(_Word),
    b"progress": msgspec.json.Decoder(Progress),
    b"kept": msgspec.json.Decoder(Kept),
    b"alert": msgspec.json.Decoder(Alert),
    b"gap": msgspec.json.Decoder(Gap),
    b"minute": msgspec.json.Decoder(Minute),
    b"job": msgspec.json.Decoder(Job),
    b"audit": msgspec.json.Decoder(AuditEntry),
    b"gone_runs": msgspec.json.Decoder(list[int]),
    b"gone_alerts": msgspec.json.Decoder(list[tuple[int, int, str]]),
    b"gone_audit": msgspec.json.Decoder(list[int]),
    b"gone_gaps": msgspec.json.Decoder(list[tuple[int, datetime, Reason]]),
}


def _replay(tables: Tables, history: History) -> None:
    unread = 0
    for place, line in history.lines():
        kind, _, rest = line[2:].partition(b'":')
        try:
            _take(tables, kind, _DECODERS[kind].decode(rest.rstrip()[:-1]), place)
        except (KeyError, msgspec.DecodeError, UnicodeDecodeError):
            unread += 1
    if unread:
        log.error("%d lines of the history cannot be read and are passed over", unread)


def _take(tables: Tables, kind: bytes, value: Any, place: Place) -> None:
    match kind:
        case b"run":
            tables.runs.set(value.id, value)
        case b"attempt":
            tables.attempts.set((value.run_id, value.epoch), place)
        case b"callback":
            tables.callbacks.set((value.run_id, value.id), place)
        case b"progress":
            tables.progress.set(value.run_id, value)
        case b"kept":
            tables.kept.set(value.run_id, value)
        case b"alert":
            tables.alerts.set(alert_key(value), value)
        case b"gap":
            tables.gaps.set((value.job_id, value.from_at, value.reason), value)
        case b"minute":
            tables.minutes.set((value.minute_at, value.kind, value.state), value)
        case b"job":
            tables.jobs.set(value.id, value)
        case b"audit":
            tables.audit.set(value.id, value)
        case b"gone_runs":
            for run_id in value:
                _forget(tables, run_id)
        case b"gone_alerts":
            for alert in value:
                tables.alerts.set(alert, None)
        case b"gone_audit":
            for id in value:
                tables.audit.set(id, None)
        case b"gone_gaps":
            for gap in value:
                tables.gaps.set(gap, None)


def _forget(tables: Tables, run_id: int) -> None:
    tables.runs.set(run_id, None)
    tables.progress.set(run_id, None)
    tables.kept.set(run_id, None)
    for table in (tables.attempts, tables.callbacks):
        for number in list(table.of_run[run_id]):
            table.set((run_id, number), None)


class _Reader:
    """Takes `jobs.json` over into the tables."""

    def __init__(self, tables: Tables, pages: Document, now: datetime) -> None:
        self._tables = tables
        self._pages = pages
        self._now = now
        self._unreadable = 0

    def read(self, raw: dict[str, Any]) -> None:
        tables = self._tables
        for entry in _entries(raw, document.UNREADABLE):
            self._set_aside(entry)
        for name in sorted(raw.keys() - document.KNOWN):
            self._refuse(name, raw[name], "nobody knows what it is")
        for name in document.LISTS:
            if not isinstance(raw.get(name, []), list):
                self._refuse(name, raw[name], "it is not a list")
        for key in self._typed(raw, document.KEYS, StoredKey):
            tables.keys.set(key.id, key)
        for record in self._typed(raw, document.IDEMPOTENCY, IdempotencyRecord):
            tables.answers.set((record.scope, record.key), record)
        for run in self._typed(raw, document.RUNS, Run):
            tables.runs.set(run.id, run)
        for kept in self._typed(raw, document.KEPT, Kept):
            tables.kept.set(kept.run_id, kept)
        for alert in self._typed(raw, document.ALERTS, Alert):
            tables.alerts.set(alert_key(alert), alert)
        for governed in self._typed(raw, document.OBJECTS, GovernedObject):
            tables.objects.set((governed.type, governed.id), governed)
        for settings in self._typed(raw, document.QUEUES, QueueSettings):
            tables.settings.set(settings.queue, settings)
        for bucket in self._typed(raw, document.BUCKETS, Bucket):
            tables.buckets.set((bucket.queue, bucket.subject), bucket)
        for job in self._typed(raw, document.OTHER_JOBS, Job):
            if problem := self._clash(job):
                self._refuse(document.OTHER_JOBS, msgspec.to_builtins(job), problem)
            else:
                tables.jobs.set(job.id, job)
        self._stand(raw.get(document.STORE), _entries(raw, document.JOBS))
        for entry in _entries(raw, document.JOBS):
            self._job(entry)

    def _typed(self, raw: dict[str, Any], section: str, kind: type[Any]) -> list[Any]:
        good = []
        for entry in _entries(raw, section):
            try:
                good.append(msgspec.convert(entry, kind))
            except msgspec.ValidationError as error:
                self._refuse(section, entry, str(error))
        return good

    def _refuse(self, section: str, entry: Any, reason: str) -> None:
        log.error("an entry of %s in %s cannot be used and is left out: %s", section, JOBS_FILE, reason)
        self._set_aside({"was_in": section, "reason": reason, "entry": entry})

    def _set_aside(self, entry: Any) -> None:
        self._pages.apply({(document.UNREADABLE, self._unreadable): encode(entry)})
        self._unreadable += 1

    def _stand(self, raw: Any, jobs: list[Any]) -> None:
        """Who the store is. No id that is in use is handed out again, whatever the file says."""
        tables = self._tables
        standing = tables.stands
        if raw is not None:
            try:
                standing = msgspec.convert(raw, Standing)
            except msgspec.ValidationError as error:
                self._refuse(document.STORE, raw, str(error))
        used = {
            "job": max((*tables.jobs.rows, *_core_ids(jobs)), default=0),
            "run": max(tables.runs.rows, default=0),
            "node": max(tables.runs.held.groups(), default=0),
            "callback": max((number for _, number in tables.callbacks.rows), default=0),
            "audit": max(tables.audit.rows, default=0),
        }
        next_ids = dict(standing.next_ids)
        for what, id in used.items():
            if id and next_ids.get(what, 1) <= id:
                next_ids[what] = id + 1
        if raw is not None or next_ids:
            tables.standing.set("", _replace(standing, next_ids=next_ids))

    def _new_id(self) -> int:
        standing = self._tables.stands
        taken = standing.next_ids.get("job", 1)
        next_ids = {**standing.next_ids, "job": taken + 1}
        self._tables.standing.set("", _replace(standing, next_ids=next_ids))
        return taken

    def _job(self, raw: Any) -> None:
        tables = self._tables
        job, problem = read_entry(raw, Circumstances(self._now, self._new_id, random.random))
        there = tables.jobs.get(job.id)
        if there is not None and there.deleted_at is None:
            # An entry copied with all there is in it is a job of its own.
            job = _replace(job, id=self._new_id())
        if clash := self._clash(job):
            problem = problem or clash
            job = _replace(
                job,
                ref=secrets.token_hex(16),
                enabled=False,
                paused_at=self._now,
                next_slot_at=None,
                next_fire_at=None,
                extras={**job.extras, INVALID: problem},
            )
        tables.jobs.set(job.id, job)
        if problem:
            log.error(
                "job %s in %s is disabled: %s. Stop, put it right, set its enabled to true, start again",
                *(job.ref, JOBS_FILE, problem),
            )
            tables.broken.set(job.id, broken_entry(raw, job, problem))

    def _clash(self, job: Job) -> str:
        jobs = self._tables.jobs
        if job.ref and job.deleted_at is None and (job.surface, job.ref) in jobs.by_ref:
            return f"id: {job.ref} is there twice; choose another"
        return ""


def _core_ids(jobs: list[Any]) -> list[int]:
    cores = (entry.get("core") for entry in jobs if isinstance(entry, dict))
    return [core["id"] for core in cores if isinstance(core, dict) and isinstance(core.get("id"), int)]


def _entries(raw: dict[str, Any], section: str) -> list[Any]:
    listed = raw.get(section)
    return listed if isinstance(listed, list) else []
