"""Hooks: where word of failed runs goes. An http address gets a signed POST; any other goes through apprise."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from datetime import datetime
from urllib.parse import urlsplit

from ksana.domain.ports import Hook
from ksana.targets.hooks.webhook import Webhook, Webhooks
from ksana.targets.http import TargetPolicy

__all__ = ["Webhook", "build_hooks", "name_of"]

# A name is a key in every store, and those have bounds.
_SHOWN_HOST = 100


def build_hooks(
    urls: Sequence[str], *, policy: TargetPolicy, now: Callable[[], datetime], signing_secret: bytes | None
) -> list[Hook]:
    """One hook for each address. InvalidArgument if one cannot be used."""
    webhooks = Webhooks(policy, now, signing_secret)
    hooks: list[Hook] = []
    for url in dict.fromkeys(urls):
        if urlsplit(url).scheme in ("http", "https"):
            hooks.append(webhooks.hook(name_of(url), url))
        else:
            # Imported only where it is asked for: most do without it.
            from ksana.targets.hooks.notifier import notifier

            hooks.append(notifier(name_of(url), url, webhooks.check_host))
    return hooks


def name_of(url: str) -> str:
    """What the alerts of this address are stored under. Path and credentials may be secrets, so a digest stands for
    them."""
    parts = urlsplit(url)
    place = (parts.hostname or "")[:_SHOWN_HOST] if parts.scheme in ("http", "https") else ""
    return f"{parts.scheme}://{place} #{hashlib.sha256(url.encode()).hexdigest()[:12]}"
