"""Callbacks: the first word about an asynchronous run counts, whoever repeats it hears how it stands."""

import pytest

from ksana.api.kit import Scope
from tests.api.v2.world import CALLBACKS, World
from tests.kit.sink import Sink


async def _waiting(world: World, sink: Sink) -> tuple[str, str]:
    """A run that awaits its callback: the path of the run and of the callback."""
    config = {"url": f"{sink.url}/work", "mode": "async", "body": "{{callback_url}}"}
    run = await world.run(await world.job("async", "http", config))
    await world.work()
    told = sink.requests[-1].body.decode()
    assert told.startswith(CALLBACKS)
    path = f"/api/v2/runs/{run['id']}"
    waiting = await world.seen(path)
    assert (waiting["state"], waiting["deadline_at"]) == ("CALLBACK_PENDING", "2030-01-01T12:05:00.000Z")
    return path, told.removeprefix("http://ksana.test")


async def test_the_first_word_counts_and_a_repeat_hears_the_state(world: World, sink: Sink) -> None:
    run, callback = await _waiting(world, sink)
    first = await world.post(callback, {"status": "SUCCESS"})
    assert first.status == 200
    assert first.json() == await world.seen(run)
    assert (first.json()["state"], first.json()["reason"], first.json()["job_name"]) == ("SUCCESS", "callback", "async")
    again = await world.post(callback, {"status": "FAILED", "error": "no"})
    assert (again.status, again.json()) == (200, first.json())


async def test_a_callback_can_bring_bad_news(world: World, sink: Sink) -> None:
    _, callback = await _waiting(world, sink)
    failed = (await world.post(callback, {"status": "FAILED", "error": "disk full"})).json()
    assert (failed["state"], failed["error"]) == ("FAILED", "disk full")


async def test_an_unknown_token_is_not_found(world: World) -> None:
    answer = await world.post("/api/v2/callbacks/nobody", {"status": "SUCCESS"})
    assert (answer.status, answer.json()["code"]) == (404, "NOT_FOUND")


async def test_a_callback_before_the_run_has_started_is_refused(world: World, sink: Sink) -> None:
    run = await world.run(await world.job("async", "http", {"url": f"{sink.url}/work", "mode": "async"}))
    [stored] = await world.store.get_runs([run["id"]])
    answer = await world.post(f"/api/v2/callbacks/{stored.callback_token}", {"status": "SUCCESS"})
    assert (answer.status, answer.json()["code"]) == (409, "INVALID_STATE")


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "status"),
        ({"status": "DONE"}, "status"),
        ({"status": "FAILED", "error": 3}, "error"),
        ({"status": "FAILED", "error": "x" * 65_537}, "error"),
        ({"status": "SUCCESS", "data": 1}, "data"),
    ],
)
async def test_a_bad_callback_is_refused_and_the_run_waits_on(
    world: World, sink: Sink, body: dict[str, object], field: str
) -> None:
    run, callback = await _waiting(world, sink)
    answer = await world.post(callback, body)
    assert (answer.status, [problem["field"] for problem in answer.json()["problems"]]) == (400, [field])
    assert (await world.seen(run))["state"] == "CALLBACK_PENDING"


async def test_a_callback_needs_no_api_key(world: World, sink: Sink) -> None:
    _, callback = await _waiting(world, sink)
    await world.key(Scope.ADMIN)
    assert (await world.post(callback, {"status": "SUCCESS"})).status == 200


async def test_a_callback_may_tell_of_progress(world: World, sink: Sink) -> None:
    """Stored and shown; it extends nothing unless `extend_sec` says so."""
    run, callback = await _waiting(world, sink)
    assert (await world.seen(run))["progress"] is None
    told = await world.post(callback, {"progress": 0.4, "message": "half-way 🙂"})
    assert (told.status, told.json()) == (200, await world.seen(run))
    shown = told.json()
    assert (shown["state"], shown["deadline_at"]) == ("CALLBACK_PENDING", "2030-01-01T12:05:00.000Z")
    said = {"fraction": 0.4, "message": "half-way 🙂", "reported_at": "2030-01-01T12:00:00.000Z"}
    assert shown["progress"] == said
    [listed] = (await world.seen("/api/v2/runs"))["items"]
    assert listed["progress"] == said
    later = (await world.post(callback, {"extend_sec": 90.5})).json()
    assert (later["deadline_at"], later["progress"]["fraction"]) == ("2030-01-01T12:06:30.500Z", 0.4)


async def test_the_ledger_shows_every_callback_and_whether_it_counted(world: World, sink: Sink) -> None:
    run, callback = await _waiting(world, sink)
    headers = {"Authorization": "Bearer s3cret", "X-From": "billing"}
    await world.post(callback, {"status": "SUCCESS"}, headers=headers)
    await world.post(callback, {"status": "FAILED"})
    first, second = await world.seen(f"{run}/callbacks")
    assert (first["id"] < second["id"], first["received_at"]) == (True, "2030-01-01T12:00:00.000Z")
    assert (first["status"], first["note"]) == ("RECEIVED", "")
    assert (second["status"], second["note"]) == ("IGNORED", "the run was SUCCESS already")
    assert '"SUCCESS"' in first["body"]["text"]
    assert (first["headers"]["authorization"], first["headers"]["x-from"]) == ("***", "billing")
    assert (await world.get("/api/v2/runs/999999/callbacks")).status == 404


async def test_a_run_may_ask_for_a_callback_its_job_does_not(world: World, sink: Sink) -> None:
    """C-91 in the words of this surface: the token is there before the call."""
    config = {"url": f"{sink.url}/work", "body": "{}"}
    run = await world.run(await world.job("sync", "http", config), input={"mode": "async", "body": "changed"})
    await world.work()
    request = sink.requests[-1]
    assert request.body == b"changed"
    assert (await world.seen(f"/api/v2/runs/{run['id']}"))["state"] == "CALLBACK_PENDING"
    url = request.header("x-callback-url")
    assert url is not None
    answer = await world.post(url.removeprefix("http://ksana.test"), {"status": "SUCCESS"})
    assert (answer.status, answer.json()["state"]) == (200, "SUCCESS")
