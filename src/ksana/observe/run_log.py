"""The log of what the engine does: a line per run, as long as there are not too many to read.

Beyond an allowance per second and level, runs are counted and told in one line, so that logging costs a busy node
next to nothing and a burst of failures cannot drown its own cause. Level debug lists every one.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from ksana.domain.claims import Claimed
from ksana.domain.fires import Gap
from ksana.domain.jobs import Job
from ksana.domain.moves import Move
from ksana.domain.runs import Attempt, Run
from ksana.domain.schedules import next_slot
from ksana.domain.states import Reason, State
from ksana.domain.times import format_instant

log = logging.getLogger(__name__)

LINES_PER_SECOND: Final = 100
_SHOWN_IDS: Final = 20
_MILLISECOND: Final = timedelta(milliseconds=1)

_TOLD: Final[dict[State, tuple[int, str]]] = {
    State.WAITING: (logging.DEBUG, "run waits"),
    State.SCHEDULED: (logging.DEBUG, "run is let in"),
    State.RUNNING: (logging.DEBUG, "attempt begins"),
    State.RETRYING: (logging.WARNING, "run failed and is tried again"),
    State.CALLBACK_PENDING: (logging.INFO, "run awaits its callback"),
    State.STOPPING: (logging.INFO, "run is to stop"),
    State.SUCCESS: (logging.INFO, "run succeeded"),
    State.FAILED: (logging.ERROR, "run failed"),
    State.TIMEOUT: (logging.ERROR, "run timed out"),
    State.CANCELED: (logging.INFO, "run canceled"),
    State.SKIPPED: (logging.INFO, "run skipped"),
    State.MISSED: (logging.WARNING, "run missed its instant"),
    State.DEAD_LETTER: (logging.ERROR, "run became a dead letter"),
}
_TOLD_WITH_REASON: Final[dict[tuple[State, Reason | None], tuple[int, str]]] = {
    (State.RUNNING, Reason.CHILDREN): (logging.DEBUG, "run waits for its steps"),
    (State.RETRYING, Reason.OPERATOR): (logging.INFO, "run is tried again on request"),
    (State.RETRYING, Reason.SHUTDOWN): (logging.INFO, "run handed back by a stopping node"),
    (State.RETRYING, Reason.LEASE_LAPSED): (logging.WARNING, "run lost its worker and is tried again"),
}
_MISFIRES: Final = frozenset({Reason.MISFIRE, Reason.CATCH_UP_LIMIT})


class _Allowance:
    """How many lines of one level are left in this second, and what came after they were used up."""

    __slots__ = ("left", "unlisted")

    def __init__(self) -> None:
        self.left = LINES_PER_SECOND
        self.unlisted: Counter[str] = Counter()


class LogObserver:
    """Tells the log what happened. `trace_id` names the trace of a run; runs of the surfaces in `announced` are also
    told when they are fired. `later` calls back after so many seconds, by default on the running loop."""

    def __init__(
        self,
        now: Callable[[], datetime],
        trace_id: Callable[[int], str],
        *,
        announced: Collection[str] = (),
        later: Callable[[float, Callable[[], None]], object] | None = None,
    ) -> None:
        self._now = now
        self._trace_id = trace_id
        self._announced = frozenset(announced)
        self._later = later or _on_running_loop
        self._second = 0
        self._allowances = {level: _Allowance() for level in (logging.INFO, logging.WARNING, logging.ERROR)}
        self._is_flush_due = False
        self._away_since: datetime | None = None

    def on_fired(self, runs: Sequence[Claimed], gaps: Sequence[Gap], now: datetime) -> None:
        if not log.isEnabledFor(logging.WARNING):
            return
        self._look_at(now)
        least = log.getEffectiveLevel()
        for one in runs:
            run, job = one.run, one.job
            if run.ended_at is not None:
                self._tell_run(run, job, None, least)
                continue
            level = logging.INFO if run.surface in self._announced else logging.DEBUG
            if level >= least and self._may_list(level, "fired"):
                self._tell_fired(level, run, job, now)
        if gaps:
            jobs = {one.run.job_id: one.job for one in runs}
            for gap in gaps:
                self._tell_gap(gap, jobs.get(gap.job_id), least)

    def on_started(self, claimed: Sequence[Claimed], now: datetime) -> None:
        if log.isEnabledFor(logging.DEBUG):
            for one in claimed:
                self._tell_run(one.run, one.job, None, logging.DEBUG)

    def on_moved(self, moves: Sequence[tuple[Move, Job | None]], now: datetime) -> None:
        if not log.isEnabledFor(logging.ERROR):
            return
        self._look_at(now)
        least = log.getEffectiveLevel()
        allowance = self._allowances[logging.INFO]
        is_limited, is_told, left_out = least > logging.DEBUG, least <= logging.INFO, 0
        for move, job in moves:
            run = move.run
            if is_limited and run.state is State.SUCCESS and not (is_told and allowance.left > 0):
                # The way almost all runs of a busy node take: one addition, and nothing else.
                left_out += 1
            else:
                self._tell_run(run, job, move.attempt, least)
        if left_out and is_told:
            self._leave_out(allowance, State.SUCCESS.value, left_out)

    def on_lost(self, run_ids: Iterable[int], now: datetime) -> None:
        lost = sorted(run_ids)
        _write(
            logging.WARNING,
            f"{len(lost)} results came too late and decide nothing: these runs had moved on already",
            {"component": "engine", "run_ids": lost[:_SHOWN_IDS], "count": len(lost)},
        )

    def on_changed(self, jobs: Sequence[Job], runs: Sequence[Claimed], now: datetime) -> None: ...

    def on_store(self, available: bool, error: str) -> None:
        if available and self._away_since is not None:
            downtime = self._now() - self._away_since
            self._away_since = None
            _write(
                logging.INFO,
                f"the store is back after {downtime.total_seconds():.1f} s; work goes on",
                {"component": "store", "downtime_ms": _millis(downtime)},
            )
        elif not available and self._away_since is None:
            self._away_since = self._now()
            _write(
                logging.ERROR,
                "the store cannot be reached; work waits until it answers again",
                {"component": "store", "error": error},
            )

    def on_clock_jump(self, jump: timedelta) -> None:
        way = "forward" if jump > timedelta(0) else "back"
        _write(
            logging.WARNING,
            f"the wall clock was set {way} by {abs(jump).total_seconds():.3f} s",
            {"component": "engine", "jump_ms": _millis(jump)},
        )

    def flush(self) -> None:
        """Tell what was counted and not listed. Call it once more when the process ends."""
        self._is_flush_due = False
        for level, allowance in self._allowances.items():
            if allowance.unlisted:
                unlisted, allowance.unlisted = allowance.unlisted, Counter()
                count = unlisted.total()
                shown = ", ".join(f"{number} {what}" for what, number in unlisted.most_common())
                _write(
                    level,
                    f"{count} more not listed: {shown}",
                    {"component": "engine", "unlisted": count, "statuses": dict(unlisted)},
                )

    def _tell_run(self, run: Run, job: Job | None, attempt: Attempt | None, least: int) -> None:
        level, message = _TOLD_WITH_REASON.get((run.state, run.reason)) or _TOLD[run.state]
        if level >= least and self._may_list(level, run.state.value):
            _write(level, message, self._run_fields(run, job, attempt))

    def _run_fields(self, run: Run, job: Job | None, attempt: Attempt | None) -> dict[str, Any]:
        fields: dict[str, Any] = {"component": "engine", "run_id": run.id}
        fields |= _job_fields(run.job_id, job)
        fields |= {"attempt": run.attempt, "status": run.state.value, "trace_id": self._trace_id(run.id)}
        if run.parent_id is not None:
            # The names by which the document of chains has its logs tell what belongs together.
            fields |= {"runId": shown_run_id(self._trace_id(run.parent_id)), "nodeId": run.step}
        if run.reason is not None:
            fields["reason"] = run.reason.value
        if (latency := _latency(run, attempt)) is not None:
            fields["latency_ms"] = _millis(latency)
        if attempt is not None and attempt.code is not None:
            fields["code"] = attempt.code
        if url := _target_url(job, attempt):
            fields["target_url"] = url
        if run.state is State.RETRYING:
            fields["retry_at"] = format_instant(run.due_at)
        if run.error:
            fields["error"] = run.error
        return fields

    def _tell_fired(self, level: int, run: Run, job: Job | None, now: datetime) -> None:
        schedule = None if job is None else job.schedule
        next_at = None if schedule is None else next_slot(schedule, now)
        fields: dict[str, Any] = {"component": "scheduler"} | _job_fields(run.job_id, job)
        fields |= {
            "run_id": run.id,
            "trace_id": self._trace_id(run.id),
            "status": run.state.value,
            "priority": run.priority.name.lower(),
            "planned_at": format_instant(run.planned_at),
            "next_run": None if next_at is None else format_instant(next_at),
        }
        _write(level, "Scheduled job enqueued", fields)

    def _tell_gap(self, gap: Gap, job: Job | None, least: int) -> None:
        level = logging.WARNING if gap.reason in _MISFIRES else logging.INFO
        if level < least or not self._may_list(level, "gap"):
            return
        fields: dict[str, Any] = {"component": "scheduler"} | _job_fields(gap.job_id, job)
        fields |= {
            "reason": gap.reason.value,
            "count": gap.count,
            "from": format_instant(gap.from_at),
            "to": format_instant(gap.to_at),
        }
        _write(level, f"{gap.count} planned instants got no run", fields)

    def _look_at(self, now: datetime) -> None:
        second = int(now.timestamp())
        if second != self._second:
            self._second = second
            for allowance in self._allowances.values():
                allowance.left = LINES_PER_SECOND

    def _may_list(self, level: int, what: str) -> bool:
        allowance = self._allowances.get(level)
        if allowance is None or log.isEnabledFor(logging.DEBUG):
            return True
        if allowance.left > 0:
            allowance.left -= 1
            return True
        self._leave_out(allowance, what)
        return False

    def _leave_out(self, allowance: _Allowance, what: str, count: int = 1) -> None:
        allowance.unlisted[what] += count
        if not self._is_flush_due:
            self._is_flush_due = True
            self._later(1.0, self.flush)


def shown_run_id(trace_id: str) -> str:
    """The id under which a chain's run is shown: its trace id in five groups."""
    return "-".join([trace_id[:8], trace_id[8:12], trace_id[12:16], trace_id[16:20], trace_id[20:]])


def _write(level: int, message: str, fields: dict[str, Any]) -> None:
    log.log(level, "%s", message, extra={"fields": fields})


def _job_fields(job_id: int | None, job: Job | None) -> dict[str, Any]:
    fields: dict[str, Any] = {} if job_id is None else {"job_id": job_id}
    if job is not None:
        fields |= {"schedule_id": job.shown_id, "job_name": job.name}
    return fields


def _latency(run: Run, attempt: Attempt | None) -> timedelta | None:
    if attempt is not None:
        return attempt.ended_at - attempt.started_at
    if run.started_at is not None and run.ended_at is not None:
        return run.ended_at - run.started_at
    return None


def _millis(span: timedelta) -> float:
    return round(span / _MILLISECOND, 3)


def _target_url(job: Job | None, attempt: Attempt | None) -> str:
    """What was called, or what the job says should have been."""
    if attempt is not None and attempt.exchange is not None:
        return attempt.exchange.request_line.partition(" ")[2]
    url = None if job is None else job.target.config.get("url")
    return url if isinstance(url, str) else ""


def _on_running_loop(seconds: float, call: Callable[[], None]) -> object:
    return asyncio.get_running_loop().call_later(seconds, call)
