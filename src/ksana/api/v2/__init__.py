"""The whole of Ksana over HTTP: every job and run, whichever surface made it."""

from __future__ import annotations

from ksana.api.kit import Surface
from ksana.api.v2 import callbacks, jobs, nodes, runs, schedules


def surface() -> Surface:
    """The routes of this surface."""
    routes = [*jobs.routes(), *runs.routes(), *schedules.routes(), *callbacks.routes(), *nodes.routes()]
    return Surface("v2", routes, summary="Jobs, runs and schedules")
