"""Tasks that fire each second on MariaDB, by HTTP to a sink on loopback: whether a slot is lost and how late the last
start; and what looking for a thousand due tasks costs among many stored ones, against a thousand alone.

python bench/tasks.py fire URL SINK TASKS SECONDS       let them fire, and count what became of every slot
python bench/tasks.py scan URL TASKS                    store tasks of which a thousand are due each second, and plan
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import uvloop
from figures import MILLIS, Figure, Missing, Row, Unit, at_most
from fresh import FailedError, say, script
from msgspec.structs import replace
from ours import Bench
from sink import running_sink

from ksana.api.services import JobDefaults
from ksana.api.tasks.task_reading import blank_task
from ksana.domain.jobs import JobSpec, TargetSpec
from ksana.domain.outcomes import AttemptContext, Outcome
from ksana.domain.schedules import CronSchedule
from ksana.stores.sql.statements import Statement
from ksana.targets.http import HttpTarget, TargetPolicy

# What is measured must not carry what only the one who measures needs.
if TYPE_CHECKING:
    from places import Places

_TASKS, _SECONDS = 1_000, 60
_QUICK_TASKS, _QUICK_SECONDS = 200, 10
_WORKERS = 16
_LEAD = 3
_DUE = 1_000
_MANY = 100_000
_QUICK_MANY = 20_000
_SCANNED_SECONDS = 30
_WARM_UP = 5
_CREATED_AT_ONCE = 1_000
_EACH_SECOND = "* * * * * *"
_NOT_SOON = "0 0 0 29 2 *"
_COUNT = Unit(lambda value: f"{value:.0f}")

_FIRED = Statement("SELECT COUNT(*) FROM ksana_runs WHERE slot_at IS NOT NULL AND state = 'SUCCESS'")
_LEFT_OUT = Statement("SELECT COUNT(*) FROM ksana_gaps")

Told = list[dict[str, float]]


def rows(places: Places, rounds: int, quick: bool) -> Iterator[Row]:
    try:
        yield from _firing(places, quick)
        yield from _scanning(places, rounds, quick)
    except FailedError as error:
        yield Row("tasks, MariaDB", Missing(str(error)))


def _firing(places: Places, quick: bool) -> Iterator[Row]:
    tasks, seconds = (_QUICK_TASKS, _QUICK_SECONDS) if quick else (_TASKS, _SECONDS)
    with running_sink() as sink, places.fresh("mysql") as url:
        told = script("tasks.py", "fire", url, sink, tasks, seconds)
    say(f"  {told}")
    part = f"{tasks:,} tasks each second for {seconds} s, {_WORKERS} workers, MariaDB"
    yield Row(f"slots lost, {part}", Figure((told["lost"],), _COUNT), wanted=at_most(0))
    yield Row(f"p99 lateness, {part}", Figure((told["p99_ms"],), MILLIS))


def _scanning(places: Places, rounds: int, quick: bool) -> Iterator[Row]:
    many = _QUICK_MANY if quick else _MANY
    few_told: Told = []
    many_told: Told = []
    for _ in range(rounds):
        for count, told in ((_DUE, few_told), (many, many_told)):
            with places.fresh("mysql") as url:
                told.append(script("tasks.py", "scan", url, count))
            say(f"  {count:,} tasks: {told[-1]}")
    for key, what in (("wall_ms", "time"), ("cpu_ms", "CPU")):
        ours, theirs = (Figure(tuple(one[key] for one in told), MILLIS) for told in (many_told, few_told))
        part = f"{what} to fire {_DUE:,} due of {many:,} tasks, MariaDB"
        yield Row(part, ours, f"{_DUE:,} tasks", theirs, at_most(1.5))


class _Timed:
    """The HTTP target, with a note of how late each of its runs starts."""

    kind = "http"

    def __init__(self) -> None:
        policy = TargetPolicy.of(allow_loopback=True, allow_private=True)
        self._real = HttpTarget(policy=policy, now=lambda: datetime.now(UTC))
        self.late: list[float] = []
        self.check = self._real.check
        self.awaits_callback = self._real.awaits_callback
        self.close = self._real.close

    async def execute(self, context: AttemptContext, config: dict[str, Any]) -> Outcome:
        self.late.append(time.time() - context.planned_at.timestamp())
        return await self._real.execute(context, config)


class _Hand:
    """A clock that is set by hand: a second of planning need not take one."""

    def __init__(self, now: datetime) -> None:
        self.at = now

    def now(self) -> datetime:
        return self.at

    async def sleep(self, span: timedelta) -> None:
        self.at += span


async def _store(bench: Bench, spec: JobSpec, count: int) -> None:
    for start in range(0, count, _CREATED_AT_ONCE):
        share = range(start, min(start + _CREATED_AT_ONCE, count))
        named = [replace(spec, name=f"{spec.name} {n}") for n in share]
        await bench.engine.jobs.create_many("tasks", named)


async def _fire(url: str, sink: str, tasks: int, seconds: int) -> dict[str, float]:
    target = _Timed()
    bench = Bench(url, _WORKERS, target)
    await bench.store.open()
    first_at = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=_LEAD + tasks // 500)
    last_at = first_at + timedelta(seconds=seconds - 1)
    blank = blank_task(JobDefaults())
    config = {**blank.target.config, "url": sink}
    schedule = CronSchedule(_EACH_SECOND, start_at=first_at, end_at=last_at)
    await _store(bench, replace(blank, name="tick", target=TargetSpec("http", config), schedule=schedule), tasks)
    assert datetime.now(UTC) < first_at, "the first second came before everything was in place"
    await bench.engine.start()
    await bench.engine.clock.sleep(last_at + timedelta(seconds=1) - datetime.now(UTC))
    # What is due is all fired before it is asked whether all of it has ended.
    while await bench.store.next_fire_at() is not None:
        await bench.engine.clock.sleep(timedelta(milliseconds=50))
    await bench.drained()
    [(fired,)] = await bench.database.read(lambda tx: tx.rows(_FIRED))
    [(gaps,)] = await bench.database.read(lambda tx: tx.rows(_LEFT_OUT))
    await bench.close()
    await target.close()
    late = sorted(target.late)
    return {
        "lost": tasks * seconds - fired,
        "gaps": gaps,
        "fired": fired,
        "p50_ms": late[len(late) // 2] * 1000,
        "p99_ms": late[int(len(late) * 0.99)] * 1000,
        "worst_ms": late[-1] * 1000,
    }


async def _scan(url: str, tasks: int) -> dict[str, float]:
    clock = _Hand(datetime.now(UTC).replace(microsecond=0))
    bench = Bench(url, 2 * _DUE, clock=clock)
    await bench.store.open()
    await bench.engine.join()
    blank = replace(blank_task(JobDefaults()), target=TargetSpec("noop"))
    await _store(bench, replace(blank, name="tick", schedule=CronSchedule(_EACH_SECOND)), _DUE)
    await _store(bench, replace(blank, name="rest", schedule=CronSchedule(_NOT_SOON)), tasks - _DUE)
    walls: list[float] = []
    cpus: list[float] = []
    for _ in range(_WARM_UP + _SCANNED_SECONDS):
        due_at = await bench.store.next_fire_at()
        assert due_at is not None
        clock.at = due_at
        wall, cpu = time.perf_counter(), time.process_time()
        while (following := await bench.store.next_fire_at()) is not None and following <= due_at:
            await bench.engine.planner.run_once()
        walls.append(time.perf_counter() - wall)
        cpus.append(time.process_time() - cpu)
        while not bench.engine.runner.is_idle:
            await bench.engine.runner.run_once()
    await bench.close()
    return {
        "wall_ms": statistics.median(walls[_WARM_UP:]) * 1000,
        "cpu_ms": statistics.median(cpus[_WARM_UP:]) * 1000,
    }


def main() -> None:
    match sys.argv[1:]:
        case ["fire", url, sink, tasks, seconds]:
            told = uvloop.run(_fire(url, sink, int(tasks), int(seconds)))
        case ["scan", url, tasks]:
            told = uvloop.run(_scan(url, int(tasks)))
        case _:
            sys.exit(__doc__)
    print(json.dumps(told))


if __name__ == "__main__":
    main()
