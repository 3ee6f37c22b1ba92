"""The stream of events: read however it is cut, and heard from a real server."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from ksana.client import Client, NotFound, Unreachable
from ksana.client.events import Event, EventReader
from tests.cli.nodes import serving

STREAM = (
    b'retry: 2000\nid: 4\n\n: keep-alive\n\nid: 5\nevent: run\ndata: {"topic":"run","id":7,"version":2,'
    b'"patch":{"state":"SUCCESS"}}\n\nid: 6\nevent: resync\ndata: {}\n\n'
)
EVENTS = [Event(topic="run", id=7, version=2, patch={"state": "SUCCESS"}), Event(topic="resync")]


@pytest.mark.parametrize("size", [1, 2, 7, 1000])
def test_events_are_read_however_they_are_cut(size: int) -> None:
    reader = EventReader()
    pieces = [STREAM[at : at + size] for at in range(0, len(STREAM), size)]
    assert [event for piece in pieces for event in reader.feed(piece)] == EVENTS


async def test_a_server_is_listened_to(tmp_path: Path) -> None:
    async with serving(tmp_path) as node:
        assert "SUCCESS" in await asyncio.to_thread(_states_of_a_run, node.url)
        with pytest.raises(NotFound):
            await asyncio.to_thread(_first, f"{node.url}/elsewhere")
    with pytest.raises(Unreachable):
        await asyncio.to_thread(_first, node.url)


def _first(url: str) -> list[Event]:
    with Client(url, retries=0) as client:
        return next(client.events("run"))


def _states_of_a_run(url: str) -> list[str]:
    """The states that are told of a run, up to its success."""
    seen: list[str] = []
    with Client(url) as client:
        job = client.jobs.create("heard", target={"kind": "noop"})
        events = client.events("run")
        # Something comes as soon as the server listens for us; what happens from then on is told.
        assert next(events) == []
        run = client.jobs.trigger(job)
        for arrived in events:
            seen += [event.patch["state"] for event in arrived if event.topic == "run" and event.id == run.id]
            if "SUCCESS" in seen:
                return seen
    raise AssertionError("the stream ended")
