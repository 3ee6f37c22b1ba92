"""What to do about a schedule now: wait, plan, fire, or finish what another scheduler began. Pure: a state and an
instant in, a verdict out.

`next_run` says which slot comes next; `last_run` decides only where there is no `next_run`, or none that the expression
could have meant, because code and its expressions change while the state stays. A schedule without a past is planned
for its next slot: nothing fires because it was deployed. Slots that were missed become one, the newest.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

import msgspec

from ksana.periodic.registry import Registry
from ksana.periodic.schedule import Schedule
from ksana.periodic.state import Stored

_SECOND: Final = timedelta(seconds=1)


class Wait(msgspec.Struct, frozen=True):
    """Nothing to do before the next slot."""

    next_at: datetime


class Plan(msgspec.Struct, frozen=True):
    """The state does not say what this definition says: write down its next slot."""

    next_at: datetime


class Fire(msgspec.Struct, frozen=True):
    """A slot is due; the one after it is `next_at`."""

    slot_at: datetime
    next_at: datetime


class Finish(msgspec.Struct, frozen=True):
    """A slot is claimed, by somebody at work or by somebody who has vanished."""

    slot_at: datetime
    next_at: datetime


Verdict = Wait | Plan | Fire | Finish


def judge(registry: Registry, schedule: Schedule, stored: Stored, now: datetime) -> Verdict:
    """The verdict for one schedule. InvalidArgument if its expression or zone has become unusable."""
    if stored.slot_under_way is not None:
        return Finish(stored.slot_under_way, registry.next_run(schedule, stored.slot_under_way))
    last_run, next_run = stored.state.last_run, stored.state.next_run
    # Not before the last run, or a clock that is behind another scheduler's would bring back what that has fired.
    fresh = registry.next_run(schedule, now if last_run is None else max(now, last_run))
    if next_run == fresh:
        return Wait(fresh)
    planned = next_run
    if planned is None:
        planned = None if last_run is None else registry.next_run(schedule, last_run)
    elif registry.next_run(schedule, planned - _SECOND) != planned:
        planned = None
    if planned is None or fresh < planned:
        return Plan(fresh)
    if planned > now:
        return Plan(planned) if next_run is None else Wait(planned)
    slot_at = max(planned, registry.latest_run(schedule, now) or planned)
    return Fire(slot_at, registry.next_run(schedule, slot_at))
