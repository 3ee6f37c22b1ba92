"""Steps of a chain's run: each call once, as data."""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import quote

import msgspec

from ksana.client.asking import RunRef, id_of
from ksana.client.calls import Call, Repeat
from ksana.client.results import Run, Step

_read: Final = msgspec.json.Decoder(list[Step]).decode
_read_run: Final = msgspec.json.Decoder(Run).decode


def steps(run: RunRef) -> Call[list[Step]]:
    """Every step of a chain's run, in the order of the definition."""
    return Call(method="GET", path=_all(run), decode=_read)


def retry_step(run: RunRef, step: str, *, reason: str = "") -> Call[Run]:
    """Try a step again that failed or was stopped. The chain goes on from there."""
    return _acted(run, step, "retry", {"reason": reason})


def complete_step(run: RunRef, step: str, *, reason: str = "", artifact: Any = msgspec.UNSET) -> Call[Run]:
    """Take a step as done, with an artifact in place of its own. The chain goes on from there."""
    fields: dict[str, Any] = {"reason": reason}
    if artifact is not msgspec.UNSET:
        fields["artifact"] = artifact
    return _acted(run, step, "complete", fields)


def _all(run: RunRef) -> str:
    return f"/api/v2/runs/{id_of(run)}/steps"


def _acted(run: RunRef, step: str, what: str, fields: dict[str, Any]) -> Call[Run]:
    path = f"{_all(run)}/{quote(step, safe='')}/{what}"
    body = msgspec.json.encode(fields)
    return Call(method="POST", path=path, decode=_read_run, body=body, repeat=Repeat.IF_NOT_DONE)
