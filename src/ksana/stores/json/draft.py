"""From changes of the tables to what is written: entries of `jobs.json` and lines of the history."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from functools import partial
from typing import Any

import msgspec

from ksana.domain.alerts import Alert
from ksana.domain.fires import Lateness
from ksana.domain.jobs import Job
from ksana.domain.moves import Kept
from ksana.domain.runs import Run
from ksana.domain.standing import RESULTS, Standing, standing_of
from ksana.domain.states import State
from ksana.stores.json import document, format
from ksana.stores.json.document import Entries
from ksana.stores.json.reading import last_run
from ksana.stores.json.table import Table
from ksana.stores.json.tables import Place, Tables
from ksana.stores.json.tx import Change

encode = msgspec.json.Encoder().encode

Line = tuple[str, Any]

_DROPPED = frozenset({State.SKIPPED})
# The file shows a `once` that nobody has looked at yet as missed by the grace that is usual.
_LATENESS = Lateness()


def line_of(kind: str, value: Any) -> bytes:
    """A thing of the history: one object with one key, which says what it is."""
    return b'{"%s":%s}\n' % (kind.encode(), encode(value))


class Draft:
    """What a group of steps writes. A later change of the same thing takes the place of an earlier one."""

    def __init__(self, tables: Tables, now: datetime) -> None:
        self._tables = tables
        self._now = now
        self._entries: dict[tuple[str, Any], bytes | None] = {}
        self._lines: dict[Line, bytes] = {}
        self._gone_runs: set[int] = set()
        self._gone_gaps: set[Any] = set()
        self._gone_alerts: set[Any] = set()
        self._gone_audit: set[int] = set()
        self._touched: dict[int, None] = {}
        self._writers: dict[int, Callable[[Any, Any], None]] = {
            id(tables.jobs): self._job,
            id(tables.runs): self._run,
            id(tables.attempts): partial(self._placed, "attempt"),
            id(tables.callbacks): partial(self._placed, "callback"),
            id(tables.progress): self._progress,
            id(tables.kept): self._kept,
            id(tables.alerts): self._alert,
            id(tables.gaps): self._gap,
            id(tables.minutes): self._minute,
            id(tables.answers): partial(self._listed, document.IDEMPOTENCY),
            id(tables.keys): partial(self._listed, document.KEYS),
            id(tables.objects): partial(self._listed, document.OBJECTS),
            id(tables.settings): partial(self._listed, document.QUEUES),
            id(tables.buckets): partial(self._listed, document.BUCKETS),
            id(tables.audit): self._audit,
            id(tables.broken): self._broken,
            id(tables.standing): self._standing,
        }

    def add(self, changes: Iterable[Change]) -> None:
        """Encode changes. Raises what the encoder raises for a value that no file can hold."""
        for table, key, value in changes:
            writer = self._writers.get(id(table))
            if writer is not None:
                writer(key, value)

    def _job(self, key: int, job: Job | None) -> None:
        text = None if job is None else encode(job)
        is_deleted = job is not None and job.deleted_at is not None
        self._entries[document.OTHER_JOBS, key] = None if is_deleted else text
        self._lines.pop(("job", key), None)
        if is_deleted:
            self._lines["job", key] = line_of("job", job)
        self._touched[key] = None

    def _broken(self, key: int, raw: Any) -> None:
        self._touched[key] = None

    def _run(self, key: int, run: Run | None) -> None:
        self._lines.pop(("run", key), None)
        if run is None:
            self._gone_runs.add(key)
            self._entries[document.RUNS, key] = None
            return
        if run.ended_at is None:
            self._entries[document.RUNS, key] = encode(run)
        else:
            self._entries[document.RUNS, key] = None
            self._lines["run", key] = line_of("run", run)
        if run.job_id is not None:
            self._touched[run.job_id] = None
        if (kept := self._tables.kept.get(key)) is not None:
            self._kept(key, kept)

    def _placed(self, kind: str, key: tuple[int, int], value: Any) -> None:
        self._lines.pop((kind, key), None)
        # What is gone went with its run, which says so.
        if value is not None and not isinstance(value, Place):
            self._lines[kind, key] = line_of(kind, value)

    def _progress(self, key: int, progress: Any) -> None:
        self._lines.pop(("progress", key), None)
        if progress is not None:
            self._lines["progress", key] = line_of("progress", progress)

    def _kept(self, key: int, kept: Kept | None) -> None:
        """What is kept of a run stands where the run does: a checkpoint that changes all the time leaves no trail."""
        self._lines.pop(("kept", key), None)
        self._entries[document.KEPT, key] = None
        run = self._tables.runs.get(key)
        if kept is None:
            return
        if run is not None and run.ended_at is None:
            self._entries[document.KEPT, key] = encode(kept)
        else:
            self._lines["kept", key] = line_of("kept", kept)

    def _alert(self, key: Any, alert: Alert | None) -> None:
        self._lines.pop(("alert", key), None)
        self._entries[document.ALERTS, key] = None
        if alert is None:
            self._gone_alerts.add(key)
        elif alert.ended_at is None:
            self._entries[document.ALERTS, key] = encode(alert)
        else:
            self._lines["alert", key] = line_of("alert", alert)

    def _gap(self, key: Any, gap: Any) -> None:
        self._lines.pop(("gap", key), None)
        if gap is None:
            self._gone_gaps.add(key)
        else:
            self._lines["gap", key] = line_of("gap", gap)

    def _minute(self, key: Any, minute: Any) -> None:
        self._lines["minute", key] = line_of("minute", minute)

    def _listed(self, name: str, key: Any, value: Any) -> None:
        """Something that stands in a list of its own, as it is."""
        self._entries[name, key] = None if value is None else encode(value)

    def _audit(self, key: int, entry: Any) -> None:
        self._lines.pop(("audit", key), None)
        if entry is None:
            self._gone_audit.add(key)
        else:
            self._lines["audit", key] = line_of("audit", entry)

    def _standing(self, key: str, standing: Any) -> None:
        self._entries[document.STORE, document.STORE] = None if standing is None else encode(standing)

    def entries(self) -> Entries:
        """What goes into `jobs.json`, now that all steps of the group are done."""
        for job_id in self._touched:
            self._show(job_id)
        self._touched.clear()
        return self._entries

    def _show(self, job_id: int) -> None:
        """The documented entry of a job; it shows its last run too, so it changes when that does."""
        job = self._tables.jobs.get(job_id)
        raw = self._tables.broken.get(job_id)
        key = (document.JOBS, job_id)
        if job is None or job.deleted_at is not None:
            self._entries[key] = None
        elif raw is not None:
            self._entries[key] = format.entry(raw)
            self._entries[document.OTHER_JOBS, job_id] = None
        elif format.is_documented(job):
            shown = format.shown(job, _standing(self._tables, job, self._now))
            self._entries[key] = format.entry(shown, format.core_of(job))
            self._entries[document.OTHER_JOBS, job_id] = None
        else:
            self._entries[key] = None

    def lines(self) -> dict[Line, bytes]:
        """What is added to the history: first what is gone, so that it may come anew."""
        gone: dict[Line, bytes] = {}
        if self._gone_runs:
            gone["gone_runs", None] = line_of("gone_runs", sorted(self._gone_runs))
        if self._gone_gaps:
            gone["gone_gaps", None] = line_of("gone_gaps", sorted(self._gone_gaps))
        if self._gone_alerts:
            gone["gone_alerts", None] = line_of("gone_alerts", sorted(self._gone_alerts))
        if self._gone_audit:
            gone["gone_audit", None] = line_of("gone_audit", sorted(self._gone_audit))
        return gone | self._lines


def _standing(tables: Tables, job: Job, now: datetime) -> Standing:
    """Where a timer stands, as its surface would show it."""
    last = last_run(tables, job.id, RESULTS) or last_run(tables, job.id, _DROPPED)
    return standing_of(job, last, not tables.runs.of_job[job.id], now, _LATENESS)


def everything(tables: Tables, now: datetime) -> Draft:
    """A draft of all there is but what is in the history and nowhere else."""
    draft = Draft(tables, now)
    lasting: list[Table[Any, Any]] = [
        tables.jobs,
        tables.runs,
        tables.progress,
        tables.kept,
        tables.alerts,
        tables.gaps,
        tables.minutes,
        tables.answers,
        tables.keys,
        tables.objects,
        tables.settings,
        tables.buckets,
        tables.audit,
        tables.broken,
        tables.standing,
    ]
    for table in lasting:
        draft.add(Change(table, key, value) for key, value in table.rows.items())
    return draft
