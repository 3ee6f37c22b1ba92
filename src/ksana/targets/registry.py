"""Finds targets by the entry point group `ksana.targets`: the name is the kind, the value builds the target.

A plug-in that does not work costs its own kind and nothing else; two that claim one kind are refused, because
which of them a run would meet is not ours to choose.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from importlib.metadata import EntryPoint, entry_points
from itertools import pairwise

from ksana.domain.errors import AlreadyExists, KsanaError
from ksana.domain.ports import Target
from ksana.targets.services import TargetServices

GROUP = "ksana.targets"

_log = logging.getLogger(__name__)


def load_targets(services: TargetServices, found: Iterable[EntryPoint] | None = None) -> dict[str, Target]:
    """Build every installed target, by kind. A wrong setting (KsanaError of a builder) stops the start."""
    # Sorted, so that a broken plug-in is reported the same way at every start.
    points = sorted(set(entry_points(group=GROUP) if found is None else found), key=lambda point: point.name)
    for first, second in pairwise(points):
        if first.name == second.name:
            raise AlreadyExists(
                f"two plug-ins give the target kind {first.name!r}, {first.value} and {second.value}; "
                "uninstall one of them"
            )
    targets = {}
    for point in points:
        target = _build(point, services)
        if target is not None:
            targets[target.kind] = target
    return targets


def _build(point: EntryPoint, services: TargetServices) -> Target | None:
    try:
        target: Target = point.load()(services)
        kind = target.kind
    except KsanaError:
        raise
    except Exception:
        _log.exception("target %r is left out: %s does not load", point.name, point.value)
        return None
    if kind != point.name:
        _log.error("target %r is left out: %s builds a target of kind %r", point.name, point.value, kind)
        return None
    return target
