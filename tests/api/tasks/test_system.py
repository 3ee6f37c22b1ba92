"""Health, version, metrics and errors of the service as a whole."""

import re
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from ksana.api.kit import Scope
from tests.api.tasks.world import World, ok, open_world, refused
from tests.kit.sink import Raw, Reply, Sink

SERIES = {
    "cronjob_task_total": ("gauge", {"status"}),
    "cronjob_run_total": ("counter", {"status"}),
    "cronjob_run_duration_seconds": ("histogram", {"task_id"}),
    "cronjob_run_retries_total": ("counter", {"task_id"}),
    "cronjob_http_request_total": ("counter", {"method", "code"}),
    "cronjob_callback_pending": ("gauge", set[str]()),
    "cronjob_scheduler_scan_latency": ("histogram", set[str]()),
    "cronjob_misfire_total": ("counter", {"task_id"}),
}


async def test_health_is_ok_while_the_store_answers(world: World) -> None:
    """C-113, X-4: plain text; 503 with the usual body while the store is away."""
    answer = await world.get("/api/v1/healthz")
    assert (answer.status, answer.body, answer.headers["content-type"]) == (200, b"ok", "text/plain; charset=utf-8")
    with world.store.away():
        assert refused(await world.get("/api/v1/healthz")) == (503, "STORE_UNAVAILABLE")


async def test_the_version_is_plain_text(world: World) -> None:
    """C-114."""
    answer = await world.get("/api/v1/version")
    assert (answer.status, answer.body) == (200, b"v1.2.3")
    assert re.match(rb"v\d+\.\d+\.\d+", answer.body)


async def test_all_eight_series_are_there_and_mean_what_they_say(world: World, sink: Sink) -> None:
    """C-115, C-138, X-79: names, types, labels and what they count, after one life of each kind."""
    sink.on("/work", Reply(500), Reply(200), Reply(202))
    retried = await world.task(
        cron_expr="* * * * * *", http_method="POST", retry_policy={"max_retries": 1, "initial_delay": 0}
    )
    await world.advance(1)
    ok(await world.patch(f"/api/v1/tasks/{retried}/disable"))
    async_run = await world.trigger(await world.task(exec_type="ASYNC"))
    await world.work()
    assert await world.metric("cronjob_callback_pending") == 1
    token = (await world.run(async_run))["CallbackToken"]
    ok(await world.post(f"/api/v1/callbacks/{token}", {"status": "SUCCESS"}))
    late = await world.task(cron_expr="*/10 * * * * *", misfire_policy="SKIP")
    world.clock.move_to(world.clock.time.replace(second=50, microsecond=0))
    world.clock.move_to(world.clock.time.replace(second=58))
    await world.work()

    expected = {
        'cronjob_task_total{status="ENABLED"}': 2,
        'cronjob_task_total{status="DISABLED"}': 1,
        'cronjob_run_total{status="SUCCESS"}': 1,
        'cronjob_run_total{status="CALLBACK_SUCCESS"}': 1,
        'cronjob_run_total{status="FAILED_TIMEOUT"}': 0,
        f'cronjob_run_duration_seconds_count{{task_id="{retried}"}}': 1,
        f'cronjob_run_retries_total{{task_id="{retried}"}}': 1,
        'cronjob_http_request_total{method="POST",code="500"}': 1,
        'cronjob_http_request_total{method="POST",code="200"}': 1,
        'cronjob_http_request_total{method="GET",code="202"}': 1,
        "cronjob_callback_pending": 0,
        f'cronjob_misfire_total{{task_id="{late}"}}': 5,
    }
    assert {series: await world.metric(series) for series in expected} == expected
    assert await world.metric("cronjob_scheduler_scan_latency_count") >= 2

    text = (await world.get("/metrics")).body.decode()
    types = dict(re.findall(r"^# TYPE (\S+) (\S+)$", text, re.MULTILINE))
    labels: dict[str, set[str]] = {name: set() for name in SERIES}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            name = re.sub(r"_(bucket|sum|count)$", "", sample.name) if family.type == "histogram" else sample.name
            if name in labels:
                labels[name] |= sample.labels.keys() - {"le"}
    assert {name: (types[name], labels[name]) for name in SERIES} == SERIES


async def test_metrics_can_be_switched_off(sqlite_tasks_url: str, sink: Sink) -> None:
    """C-135."""
    async with open_world(sqlite_tasks_url, sink, {"metrics": None}) as world:
        assert (await world.get("/metrics")).status == 404


async def test_a_fault_of_ours_is_internal_and_tells_nothing(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """C-15, C-118: 500 INTERNAL with the id under which the log has it; the process goes on."""

    async def broken(query: Any) -> Any:
        raise RuntimeError("secret detail")

    with monkeypatch.context() as patched:
        patched.setattr(world.store, "find_jobs", broken, raising=False)
        answer = await world.get("/api/v1/tasks", headers={"X-Request-Id": "r-1"})
    assert refused(answer) == (500, "INTERNAL")
    assert b"secret" not in answer.body
    assert answer.json()["request_id"] == "r-1"
    assert (await world.get("/api/v1/healthz")).body == b"ok"


async def test_nothing_a_target_does_stops_the_service(world: World, sink: Sink) -> None:
    """C-15: garbage, a refused port, a name that is none; each run fails by itself."""
    sink.on("/work", Raw())
    urls = [f"{sink.url}/work", "http://127.0.0.1:1/", "http://nobody.invalid/", "http://{{input.x}}/"]
    runs = [await world.trigger(await world.task(target_url=url)) for url in urls]
    await world.work()
    assert {(await world.run(run))["Status"] for run in runs} == {"FAILED"}
    assert (await world.get("/api/v1/healthz")).body == b"ok"


async def test_a_store_that_is_away_is_told_and_comes_back(world: World, sink: Sink) -> None:
    """C-142, G7: 503 for callers, a metric for operators, and scheduling goes on by itself when it is back."""
    task = await world.task(cron_expr="* * * * * *")
    with world.store.away():
        assert refused(await world.get(f"/api/v1/tasks/{task}")) == (503, "STORE_UNAVAILABLE")
        world.clock.move_to(world.clock.time.replace(second=2))
        await world.begin()
    await world.advance(1)
    assert await world.metric("ksana_store_outages_total") == 1
    assert sink.count == 3


async def test_keys_are_needed_once_there_are_any(world: World) -> None:
    """C-10: by default nobody is asked who they are; C-162: and with keys everybody is, but for health and version."""
    task = await world.task()
    reader = await world.key(Scope.JOB_READ)
    assert refused(await world.get(f"/api/v1/tasks/{task}")) == (401, "UNAUTHENTICATED")
    assert (await world.get(f"/api/v1/tasks/{task}", headers=reader)).status == 200
    refusal = await world.post(f"/api/v1/tasks/{task}/trigger", headers=reader)
    assert refused(refusal) == (403, "FORBIDDEN")
    assert (await world.get("/api/v1/healthz")).status == (await world.get("/api/v1/version")).status == 200


async def test_a_path_that_is_there_with_another_method_says_which(world: World) -> None:
    answer = await world.call("PUT", "/api/v1/tasks")
    assert refused(answer) == (405, "METHOD_NOT_ALLOWED")
    assert answer.headers["allow"] == "GET, HEAD, OPTIONS, POST"
