"""Ksana runs things on time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ksana.client import AsyncClient, Client
    from ksana.embedded import Ksana

__version__ = "0.1.0"

__all__ = ["AsyncClient", "Client", "Ksana", "__version__"]


def __getattr__(name: str) -> Any:
    # Every module of the package loads this one first, and few of them need more than the version.
    if name == "Ksana":
        from ksana.embedded import Ksana

        return Ksana
    if name in ("AsyncClient", "Client"):
        from ksana import client

        return getattr(client, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
