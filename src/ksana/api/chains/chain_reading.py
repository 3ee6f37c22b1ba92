"""From a request about a chain to what the engine stores."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

import msgspec

from ksana.api.chains.chain_shapes import ANY_NUMBER, AT, VERSION, ChainInput, ChainUpdate, version_of
from ksana.api.chains.json_text import read_dag
from ksana.api.chains.schedules import read_schedule
from ksana.api.services import JobDefaults
from ksana.domain.errors import InvalidArgument, Problem, VersionConflict
from ksana.domain.graph import read_graph
from ksana.domain.jobs import Job, JobSpec, TargetSpec
from ksana.domain.plans import CHAIN
from ksana.domain.policies import Misfire, MisfireRule, Overlap, OverlapRule
from ksana.domain.schedules import Schedule

_replace = msgspec.structs.replace


def read_new_chain(body: ChainInput, defaults: JobDefaults, now: datetime) -> JobSpec:
    """The chain a request asks for; the engine looks at its graph."""
    problems: list[Problem] = []
    dag = _named_dag(body, problems)
    blank = JobSpec(
        name="",
        unique_name=True,
        target=TargetSpec(CHAIN),
        enabled=body.enabled is not False,
        overlap=ANY_NUMBER,
        timeouts=defaults.timeouts,
        extras={VERSION: 1, AT: 1},
    )
    return _read(body, dag, blank, defaults, now, problems)


def read_update(body: ChainUpdate, defaults: JobDefaults, now: datetime) -> Callable[[Job], JobSpec]:
    """What an update makes of a chain; VersionConflict if it was made for another version."""
    problems: list[Problem] = []
    dag = _named_dag(body, problems)
    if problems:
        raise InvalidArgument(problems)

    def edit(job: Job) -> JobSpec:
        if body.version != version_of(job):
            # Whoever sent a wrong dag hears of that first: with another version it would still be wrong.
            read_graph(dag)
            raise VersionConflict(f"chain {job.id} is at version {version_of(job)}, not {body.version}")
        updated = _replace(job, extras=_noted(job, body.version + 1))
        return _read(body, dag, updated, defaults, now, [])

    return edit


def switched(job: Job, enabled: bool) -> JobSpec:
    """The chain switched on or off."""
    if job.enabled == enabled:
        return job
    return _replace(job, enabled=enabled, extras=_noted(job, version_of(job)))


def _noted(job: Job, version: int) -> dict[str, Any]:
    return {**job.extras, VERSION: version, AT: job.version + 1}


def _named_dag(body: ChainInput | ChainUpdate, problems: list[Problem]) -> dict[str, Any]:
    if not body.name.strip():
        problems.append(Problem("name", "must not be blank"))
    dag: dict[str, Any] = {}
    try:
        dag = read_dag(body.dag_json)
        if problems:
            read_graph(dag)
    except InvalidArgument as error:
        problems += error.problems
    return dag


def _read(
    body: ChainInput | ChainUpdate,
    dag: dict[str, Any],
    spec: JobSpec,
    defaults: JobDefaults,
    now: datetime,
    problems: list[Problem],
) -> JobSpec:
    read = _replace(
        spec,
        name=body.name,
        description=body.description or "",
        target=TargetSpec(CHAIN, dag),
        schedule=_schedule(body, spec.schedule, defaults, now, problems),
        misfire=_misfire(body, spec.misfire, problems),
        overlap=_overlap(body, spec.overlap, problems),
    )
    if problems:
        raise InvalidArgument(problems)
    return read


def _schedule(
    body: ChainInput | ChainUpdate,
    old: Schedule | None,
    defaults: JobDefaults,
    now: datetime,
    problems: list[Problem],
) -> Schedule | None:
    if body.schedule is None or body.schedule is msgspec.UNSET:
        return None if body.schedule is None else old
    try:
        return read_schedule(body.schedule, old, defaults, now)
    except InvalidArgument as error:
        problems += error.problems
        return old


def _misfire(body: ChainInput | ChainUpdate, old: Misfire, problems: list[Problem]) -> Misfire:
    rule, limit = body.misfire or old.rule, body.catch_up_limit
    if limit is not None and rule is not MisfireRule.CATCH_UP:
        problems.append(Problem("catchUpLimit", 'goes with "misfire": "catch_up"'))
    return Misfire(rule, old.limit if limit is None else limit)


def _overlap(body: ChainInput | ChainUpdate, old: Overlap, problems: list[Problem]) -> Overlap:
    rule, most = body.overlap or old.rule, body.max_concurrency
    if most is not None and rule is OverlapRule.PARALLEL:
        if body.overlap is not None:
            problems.append(Problem("maxConcurrency", 'bounds nothing with "overlap": "parallel"; say queue or skip'))
        # A bound alone means that what is beyond it waits.
        rule = OverlapRule.QUEUE
    return Overlap(rule, old.max_concurrency if most is None else most)
