"""Chains of nodes, their runs and what people do to them, in the words of the JobChain service."""

from __future__ import annotations

from ksana.api.chains import chains, nodes, runs
from ksana.api.kit import Surface


def surface() -> Surface:
    """The routes of this surface."""
    routes = [*chains.routes(), *runs.routes(), *nodes.routes()]
    return Surface("chains", routes, summary="Chains of nodes, their runs and their nodes", strict_query=False)
