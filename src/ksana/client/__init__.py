"""A Ksana server from Python: `Client` for programs that block, `AsyncClient` for those that await."""

from ksana.client.client import AsyncClient, Client
from ksana.client.errors import (
    ApiError,
    ClientError,
    Conflict,
    Invalid,
    NotAllowed,
    NotFound,
    StillRunning,
    Unavailable,
    Unreachable,
)
from ksana.client.items import Item
from ksana.client.results import Attempt, Job, Preview, Run

__all__ = [
    "ApiError",
    "AsyncClient",
    "Attempt",
    "Client",
    "ClientError",
    "Conflict",
    "Invalid",
    "Item",
    "Job",
    "NotAllowed",
    "NotFound",
    "Preview",
    "Run",
    "StillRunning",
    "Unavailable",
    "Unreachable",
]
