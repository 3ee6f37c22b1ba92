"""Dead letters grouped by their error, for stores that have no database to do it."""

from __future__ import annotations

from collections.abc import Iterable

from ksana.domain.queries import ErrorGroup
from ksana.domain.runs import Run


def by_error(dead: Iterable[Run], limit: int) -> list[ErrorGroup]:
    """The largest groups, then by queue and error."""
    alike: dict[tuple[str, str], list[Run]] = {}
    for run in dead:
        alike.setdefault((run.queue, run.error), []).append(run)
    groups = [_group(runs) for runs in alike.values()]
    return sorted(groups, key=lambda group: (-group.count, group.queue, group.error))[:limit]


def _group(runs: list[Run]) -> ErrorGroup:
    ended = [run.ended_at for run in runs if run.ended_at is not None]
    return ErrorGroup(
        queue=runs[0].queue,
        error=runs[0].error,
        count=len(runs),
        first_at=min(ended),
        last_at=max(ended),
        run_id=max(run.id for run in runs),
    )
