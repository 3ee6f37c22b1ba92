"""The settings of this node, each with its source."""

from __future__ import annotations

from typing import Any

import msgspec

from ksana.api.kit import Call, Route, Scope
from ksana.api.services import Services, Setting


class SettingsView(msgspec.Struct, frozen=True, kw_only=True):
    """Every setting: its value with secrets hidden, where the value came from, and the variables that set it."""

    items: list[Setting]


async def settings(call: Call[None, None]) -> SettingsView:
    """The settings of the node that answers; others may have been started with others."""
    services: Services = call.services
    return SettingsView(items=list(services.settings))


def routes() -> list[Route[Any, Any]]:
    return [
        Route("GET", "/api/v2/settings", settings, Scope.JOB_READ, response=SettingsView, summary="List the settings")
    ]
