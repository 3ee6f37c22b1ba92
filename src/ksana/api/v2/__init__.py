"""The whole of Ksana over HTTP: every job and run, whichever surface made it."""

from __future__ import annotations

from ksana.api.kit import Surface
from ksana.api.v2 import (
    alerts,
    audit,
    backfill,
    callbacks,
    caller,
    completing,
    events,
    heatmap,
    histogram,
    jobs,
    layout,
    neighbours,
    nodes,
    operations,
    outcomes,
    overview,
    queues,
    run_diff,
    runs,
    schedules,
    settings,
    steps,
    system,
    timeline,
    versions,
    waterfall,
)


def surface() -> Surface:
    """The routes of this surface."""
    parts = (
        jobs,
        runs,
        steps,
        schedules,
        callbacks,
        alerts,
        nodes,
        caller,
        operations,
        events,
        overview,
        timeline,
        heatmap,
        histogram,
        waterfall,
        run_diff,
        neighbours,
        completing,
        outcomes,
        layout,
        backfill,
        queues,
        system,
        settings,
        audit,
        versions,
    )
    routes = [route for part in parts for route in part.routes()]
    return Surface("v2", routes, summary="Jobs, runs and schedules")
