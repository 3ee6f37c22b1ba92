"""From what somebody types to the thing they mean: an id, or a name, with a suggestion if nothing is called so."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

import click

from ksana.domain.errors import InvalidArgument, NotFound

if TYPE_CHECKING:
    from ksana.client import Client, Job

# Suggestions are worth a look at this many names, not at all of a large server's.
_MOST_NAMES = 1000


def find_job(server: Client, text: str, kind: str | None = None) -> Job:
    """The job with this id or name. A number is an id first: names that are numbers are rare."""
    from ksana.client.errors import NotFound as NoSuchId

    noun = kind or "job"
    if text.isdecimal():
        try:
            found = server.jobs.get(int(text))
        except NoSuchId:
            pass
        else:
            if kind is None or found.target.kind == kind:
                return found
    named = [job for job in server.jobs.list(name=text, kind=kind) if text in (job.name, job.ref)]
    if len(named) == 1:
        return named[0]
    if named:
        ids = ", ".join(f"{job.id} ({job.surface})" for job in named)
        raise InvalidArgument.of(noun, f"{len(named)} are called {text!r}; say which by its id: {ids}")
    raise NotFound(f"there is no {noun} {text!r}{_did_you_mean(server, text, kind)}")


def run_id(text: str) -> int:
    """A run by its number."""
    if not text.isdecimal():
        raise InvalidArgument.of("RUN", f"{text!r} is no id of a run; `ksana runs list` shows them")
    return int(text)


def job_names(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Names that begin like what was typed, for completion; nothing if the server does not answer at once."""
    from ksana.client import Client
    from ksana.domain.errors import KsanaError

    try:
        with Client(ctx.params.get("url"), ctx.params.get("key"), retries=0, timeout=0.5) as server:
            page = server.ask("GET", "/api/v2/jobs", query={"name": incomplete, "page_size": 200})
    except KsanaError:
        return []
    return sorted({job["name"] for job in page["items"] if job["name"].startswith(incomplete)})


def _did_you_mean(server: Client, text: str, kind: str | None) -> str:
    names: list[str] = []
    for job in server.jobs.list(kind=kind, page_size=200):
        names.append(job.name)
        if len(names) >= _MOST_NAMES:
            break
    folded = {name.lower(): name for name in names}
    close = get_close_matches(text.lower(), folded, 1, 0.6)
    return f"; did you mean {folded[close[0]]!r}?" if close else "; `ksana jobs list` shows what there is"
