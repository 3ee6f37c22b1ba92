"""One app for all the worlds of a process: to build one takes longer than most tests do."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from typing import Any, cast

from starlette.types import ASGIApp, Receive, Scope, Send

from ksana.api.kit import KeyRing, Surface, build_app
from ksana.api.services import Services
from ksana.api.stored import StoredAnswers

MakeSurface = Callable[[], Surface]


@dataclass(frozen=True)
class Seat:
    """What the app works with while it serves one world; without a ring it is open."""

    services: Services
    answers: StoredAnswers
    ring: KeyRing | None = None


def shared_app(seat: Seat, *surfaces: MakeSurface, **options: Any) -> ASGIApp:
    """The app of these surfaces and options, as it serves whoever sits here; options are hashable."""
    app = _app(surfaces, seat.ring is not None, tuple(sorted(options.items())))

    async def served(scope: Scope, receive: Receive, send: Send) -> None:
        token = _taken.set(seat)
        try:
            await app(scope, receive, send)
        finally:
            _taken.reset(token)

    return served


_taken: ContextVar[Seat] = ContextVar("taken")


class _Of:
    """A part of the seat that is taken."""

    def __init__(self, part: str) -> None:
        self._part = part

    def __getattr__(self, name: str) -> Any:
        return getattr(getattr(_taken.get(), self._part), name)


@cache
def _app(surfaces: tuple[MakeSurface, ...], has_keys: bool, options: tuple[tuple[str, Any], ...]) -> ASGIApp:
    return build_app(
        [surface() for surface in surfaces],
        _Of("services"),
        keys=cast(KeyRing, _Of("ring")) if has_keys else None,
        idempotency=cast(StoredAnswers, _Of("answers")),
        **dict(options),
    )
