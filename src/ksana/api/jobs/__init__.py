"""Timers: the `/jobs` of the Ksana document. Jobs that call a URL once, every so often, or by cron."""

from __future__ import annotations

from ksana.api.jobs.routes import routes
from ksana.api.kit import Surface


def surface() -> Surface:
    """The routes of this surface."""
    return Surface("jobs", routes(), summary="Timers that call a URL", strict_query=False)
