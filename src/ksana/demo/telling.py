"""What the demo says while it runs: one line for each run that ends, fails, is tried again or waits outside."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

from ksana.domain.runs import Run
from ksana.domain.states import State
from ksana.engine.engine import Engine
from ksana.engine.feed import RunNews, Topic

_ICONS = {
    State.SUCCESS: "✓",
    State.FAILED: "✕",
    State.TIMEOUT: "✕",
    State.DEAD_LETTER: "✕",
    State.RETRYING: "↻",
    State.CALLBACK_PENDING: "⇄",
    State.CANCELED: "⊘",
    State.SKIPPED: "⊘",
}
_LONG = timedelta(hours=1)


def line_of(run: Run, job_name: str | None, now: datetime) -> str | None:
    """What there is to say of a run as it stands; None if nothing is."""
    icon = _ICONS.get(run.state)
    if icon is None or run.parent_id is not None:
        return None
    name = job_name or run.queue.removeprefix("@") + (f" {run.step}" if run.step else "")
    match run.state:
        case State.RETRYING:
            text = f"{run.error}; again in {max(0.0, (run.due_at - now).total_seconds()):.0f} s"
        case State.CALLBACK_PENDING:
            text = "waits for its callback"
        case State.SUCCESS:
            text = _took(run)
        case _:
            text = f"{run.state.value.lower().replace('_', ' ')}: {run.error or run.reason or ''}"
    return f"{icon} {name:<18} {text}  (run {run.id})"


def _took(run: Run) -> str:
    if run.started_at is None or run.ended_at is None:
        return "done"
    took = (run.ended_at - run.started_at).total_seconds()
    return f"{took * 1000:.0f} ms" if took < 1 else f"{took:.1f} s"


async def tell(engine: Engine, write: Callable[[str], None]) -> None:
    """Write lines until it is cancelled."""
    listener = engine.feed.listen({Topic.RUN})
    while not listener.is_closed:
        await listener.wait(_LONG)
        for news in listener.taken()[1]:
            if isinstance(news.subject, RunNews):
                line = line_of(news.subject.run, news.subject.job_name, news.at)
                if line is not None:
                    write(line)
