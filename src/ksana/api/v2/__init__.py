"""The whole of Ksana over HTTP: every job and run, whichever surface made it."""

from __future__ import annotations

from ksana.api.kit import Surface
from ksana.api.v2 import alerts, callbacks, jobs, nodes, runs, schedules, steps


def surface() -> Surface:
    """The routes of this surface."""
    parts = (jobs, runs, steps, schedules, callbacks, alerts, nodes)
    routes = [route for part in parts for route in part.routes()]
    return Surface("v2", routes, summary="Jobs, runs and schedules")
