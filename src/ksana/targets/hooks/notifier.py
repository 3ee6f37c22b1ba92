"""Alerts through apprise: mail, chat and a hundred other services, by address. Needs `ksana-scheduler[apprise]`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from ksana.domain.alerts import Alert
from ksana.domain.errors import InvalidArgument

CheckHost = Callable[[str], Awaitable[str]]


def notifier(name: str, url: str, check_host: CheckHost) -> Notifier:
    """The hook for one address. InvalidArgument if apprise is missing or does not know it."""
    try:
        import apprise
    except ImportError:
        raise InvalidArgument.of(
            "alerts.urls", f"{name} needs apprise; pip install 'ksana-scheduler[apprise]', or give an https:// address"
        ) from None
    service = apprise.Apprise.instantiate(url, suppress_exceptions=True)
    if not isinstance(service, apprise.NotifyBase):
        raise InvalidArgument.of("alerts.urls", f"{name} is no address that apprise knows")
    return Notifier(name, service, check_host)


class Notifier:
    """One service that is told of failures. Where it has a host of its own, the target policy is asked about it."""

    def __init__(self, name: str, service: Any, check_host: CheckHost) -> None:
        self.name = name
        self._service = service
        self._check_host = check_host

    async def deliver(self, alert: Alert) -> str:
        host = getattr(self._service, "host", None)
        if isinstance(host, str) and host and (refusal := await self._check_host(host)):
            return f"not called: {refusal}"
        title, text = _words(alert)
        # apprise speaks to most services with a blocking client.
        taken = await asyncio.to_thread(self._service.notify, body=text, title=title)
        return "" if taken else "the service did not take it; the log of apprise says why"

    async def close(self) -> None: ...


def _words(alert: Alert) -> tuple[str, str]:
    told = msgspec.json.decode(alert.body)
    run, job = told["run"], told["job"]
    title = f"{job['name'] if job else 'run'} {run['state']}"
    lines = [
        f"run {run['id']} of job {job['name']} ({job['id']})" if job else f"run {run['id']}",
        f"planned {run['planned_at']}, ended {run['ended_at']} after {run['attempt']} attempts",
        run["error"] or run["reason"] or "",
    ]
    return title, "\n".join(line for line in lines if line)
