"""On whose behalf something is done, for the audit. Whoever lets somebody in says so around what is done for them, and
all that is called within knows; what happens by itself is done on nobody's behalf."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import msgspec

from ksana.engine.auditing import Actor

_actor: ContextVar[Actor | None] = ContextVar("ksana_actor", default=None)


@contextmanager
def acting(actor: Actor | None) -> Iterator[None]:
    """Do what is within on behalf of this actor."""
    token = _actor.set(actor)
    try:
        yield
    finally:
        _actor.reset(token)


@contextmanager
def because(reason: str) -> Iterator[None]:
    """Do what is within on behalf of the same actor, for this reason."""
    actor = _actor.get()
    with acting(None if actor is None else msgspec.structs.replace(actor, reason=reason)):
        yield


def current_actor() -> Actor | None:
    return _actor.get()
