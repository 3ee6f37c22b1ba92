"""Scheduled HTTP tasks, their runs and their callbacks, in the words of the CronJob service."""

from __future__ import annotations

from ksana.api.kit import ErrorStyle, Surface
from ksana.api.tasks import callbacks, one_node, runs, system, tasks


def surface() -> Surface:
    """The routes of this surface."""
    routes = [*tasks.routes(), *runs.routes(), *one_node.routes(), *callbacks.routes(), *system.routes()]
    return Surface(
        "tasks",
        routes,
        error_style=ErrorStyle.CODE,
        summary="Scheduled HTTP tasks, their runs and their callbacks",
        strict_query=False,
    )
