"""The queue that workers pull from: items are enqueued, handed out when they are due, acknowledged or failed."""

from __future__ import annotations

from ksana.api.kit import Surface
from ksana.api.queue import audit, dead_letters, enqueueing, handing_out, limiting, looking, objects, settling, stats


def surface() -> Surface:
    """The routes of this surface."""
    rooms = (enqueueing, handing_out, settling, looking, dead_letters, stats, objects, audit, limiting)
    routes = [route for room in rooms for route in room.routes()]
    return Surface("queue", routes, summary="A queue that workers pull from")
