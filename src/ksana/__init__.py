"""Ksana runs things on time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ksana.client import AsyncClient, Client, Item
    from ksana.domain.outcomes import AttemptContext as Run
    from ksana.domain.signals import Ack, Retry
    from ksana.embedded import Ksana

__version__ = "0.1.0"

__all__ = ["Ack", "AsyncClient", "Client", "Item", "Ksana", "Retry", "Run", "__version__"]


def __getattr__(name: str) -> Any:
    # Every module of the package loads this one first, and few of them need more than the version.
    if name == "Ksana":
        from ksana.embedded import Ksana

        return Ksana
    if name in ("AsyncClient", "Client", "Item"):
        from ksana import client

        return getattr(client, name)
    if name in ("Ack", "Retry"):
        from ksana.domain import signals

        return getattr(signals, name)
    if name == "Run":
        from ksana.domain.outcomes import AttemptContext

        return AttemptContext
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
