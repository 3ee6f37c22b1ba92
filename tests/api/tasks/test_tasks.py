"""Tasks over HTTP: created, shown, listed, changed, switched and deleted as the document says."""

from typing import Any

import pytest

from tests.api.tasks.world import FAR, World, ok, problems, refused
from tests.kit.sink import Sink

NOW = "2030-01-01T12:00:00Z"

DESIGN = {
    "name": "sync_stats",
    "description": "统计同步",
    "cron_expr": "0 */5 * * *",
    "exec_type": "SYNC",
    "http_method": "POST",
    "target_url": "http://svc.internal/api/sync",
    "headers": {"Content-Type": "application/json"},
    "body_template": '{"run_id": "{{run_id}}"}',
    "timeout_seconds": 10,
    "retry_policy": {"max_retries": 3, "initial_delay": 5, "strategy": "exponential", "max_delay": 60},
    "max_concurrency": 1,
    "concurrency_policy": "QUEUE",
    "misfire_policy": "FIRE_NOW",
    "catchup_limit": 5,
}
PHASE_ONE = {
    "name": "demo_task",
    "description": "示例任务",
    "cron_expr": "*/30 * * * * *",
    "exec_type": "SYNC",
    "http_method": "GET",
    "target_url": "https://httpbin.org/get",
    "timeout_seconds": 5,
}
PASCAL = {
    "ID": 1,
    "Name": "demo_task",
    "Description": "示例任务",
    "CronExpr": "*/30 * * * * *",
    "Timezone": "UTC",
    "ExecType": "SYNC",
    "HTTPMethod": "GET",
    "TargetURL": "https://httpbin.org/get",
    "HeadersJSON": "",
    "BodyTemplate": "",
    "TimeoutSeconds": 5,
    "RetryPolicyJSON": "",
    "MaxConcurrency": 1,
    "ConcurrencyPolicy": "QUEUE",
    "MisfirePolicy": "FIRE_NOW",
    "CatchupLimit": 0,
    "CallbackMethod": "POST",
    "CallbackTimeoutSec": 300,
    "Status": "ENABLED",
    "Version": 1,
    "CreatedAt": NOW,
    "UpdatedAt": NOW,
}
SNAKE = {
    "id": 1,
    "name": "demo_task",
    "description": "示例任务",
    "cron_expr": "*/30 * * * * *",
    "timezone": "UTC",
    "exec_type": "SYNC",
    "http_method": "GET",
    "target_url": "https://httpbin.org/get",
    "headers": {},
    "body_template": "",
    "timeout_seconds": 5,
    "retry_policy": {"max_retries": 0, "initial_delay": 5, "strategy": "fixed", "max_delay": 3600},
    "max_concurrency": 1,
    "concurrency_policy": "QUEUE",
    "misfire_policy": "FIRE_NOW",
    "catchup_limit": 0,
    "callback_method": "POST",
    "callback_timeout_sec": 300,
    "status": "ENABLED",
    "version": 1,
    "created_at": NOW,
    "updated_at": NOW,
    "next_run_time": "2030-01-01T12:00:30Z",
}


async def test_the_example_of_phase_one_is_created_and_shown_in_both_spellings(world: World) -> None:
    """C-79, C-80, C-81, C-85, C-86, C-100, C-119: the answer, every key with its type, every default, times in UTC."""
    made = await world.post("/api/v1/tasks", PHASE_ONE)
    assert (made.status, made.json()) == (201, {"id": 1, "name": "demo_task"})
    assert made.headers["content-type"] == "application/json"
    assert made.headers["location"] == "/api/v1/tasks/1"
    assert await world.seen("/api/v1/tasks/1") == {**PASCAL, **SNAKE}


async def test_the_example_of_the_design_is_kept_whole(world: World) -> None:
    """C-3, C-64, C-65, C-78: every field of the design's request comes back, objects as text under the old keys."""
    made = ok(await world.post("/api/v1/tasks", DESIGN))
    assert made == {"id": 1, "name": "sync_stats"}
    shown = await world.seen("/api/v1/tasks/1")
    assert {name: shown[name] for name in DESIGN} == {**DESIGN, "cron_expr": "0 0 */5 * * *"}
    assert shown["HeadersJSON"] == '{"Content-Type":"application/json"}'
    assert shown["RetryPolicyJSON"] == '{"max_retries":3,"initial_delay":5,"strategy":"exponential","max_delay":60}'


async def test_a_task_needs_only_a_name_a_cron_and_a_target(world: World) -> None:
    """X-27: what is left out has the document's default."""
    await world.post("/api/v1/tasks", {"name": "t", "cron_expr": FAR, "target_url": "http://t.test/"})
    shown = await world.seen("/api/v1/tasks/1")
    assert (shown["ExecType"], shown["HTTPMethod"], shown["TimeoutSeconds"]) == ("SYNC", "GET", 10)


async def test_input_takes_the_keys_of_the_answers_too(world: World) -> None:
    """R6: PascalCase in, as in what a GET shows; JSON in a string where the document has it so."""
    given = {
        "Name": "p",
        "CronExpr": FAR,
        "TargetURL": "http://t.test/",
        "HeadersJSON": '{"X-A": "1"}',
        "RetryPolicyJSON": '{"max_retries": 2}',
        "HTTPMethod": "put",
        "CallbackTimeoutSec": 9,
    }
    ok(await world.post("/api/v1/tasks", given))
    shown = await world.seen("/api/v1/tasks/1")
    assert (shown["name"], shown["headers"], shown["retry_policy"]["max_retries"]) == ("p", {"X-A": "1"}, 2)
    assert (shown["http_method"], shown["callback_timeout_sec"]) == ("PUT", 9)
    ok(await world.put("/api/v1/tasks/1", shown))
    again = await world.seen("/api/v1/tasks/1")
    # Saying the same again changes nothing, not even the version.
    assert again == shown


async def test_two_spellings_that_disagree_are_refused(world: World) -> None:
    await world.task()
    said = problems(await world.patch("/api/v1/tasks/1", {"description": "a", "Description": "b"}))
    assert said == {"description": "says something else than Description; send one of them"}
    said = problems(await world.patch("/api/v1/tasks/1", {"headers": {}, "HeadersJSON": '{"a": "b"}'}))
    assert list(said) == ["headers"]


async def test_unknown_fields_do_no_harm(world: World) -> None:
    """C-95."""
    assert (await world.post("/api/v1/tasks", {**PHASE_ONE, "foo": 1, "deleted": 1})).status == 201


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"name": None}, "name"),
        ({"name": ""}, "name"),
        ({"name": "n" * 129}, "name"),
        ({"description": "d" * 513}, "description"),
        ({"cron_expr": None}, "cron_expr"),
        ({"cron_expr": "0 0 0 1 1 " + "1," * 30}, "cron_expr"),
        ({"cron_expr": "61 * * * * *"}, "cron_expr"),
        ({"cron_expr": "* * *"}, "cron_expr"),
        ({"cron_expr": "a b c d e"}, "cron_expr"),
        ({"cron_expr": "* * * * * * *"}, "cron_expr"),
        ({"cron_expr": "0 0 30 2 *"}, "cron_expr"),
        ({"cron_expr": "@every 5m"}, "cron_expr"),
        ({"timezone": "Mars/Base"}, "timezone"),
        ({"timezone": "x" * 65}, "timezone"),
        ({"exec_type": "BATCH"}, "exec_type"),
        ({"http_method": "FETCH"}, "http_method"),
        ({"http_method": "PROPFINDS"}, "http_method"),
        ({"target_url": None}, "target_url"),
        ({"target_url": "http://t.test/" + "x" * 500}, "target_url"),
        ({"target_url": "ftp://t.test/"}, "target_url"),
        ({"headers": {"X A": "1"}}, "headers.X A"),
        ({"headers": {"X-A": 1}}, "headers.X-A"),
        ({"HeadersJSON": "{"}, "HeadersJSON"),
        ({"HeadersJSON": "[]"}, "HeadersJSON"),
        ({"timeout_seconds": 0}, "timeout_seconds"),
        ({"timeout_seconds": 86_401}, "timeout_seconds"),
        ({"timeout_seconds": "5"}, "timeout_seconds"),
        ({"retry_policy": {"max_retries": -1}}, "retry_policy.max_retries"),
        ({"retry_policy": {"strategy": "linear"}}, "retry_policy.strategy"),
        ({"retry_policy": {"initial_delay": -1}}, "retry_policy.initial_delay"),
        ({"max_concurrency": -1}, "max_concurrency"),
        ({"concurrency_policy": "WAIT"}, "concurrency_policy"),
        ({"misfire_policy": "MAYBE"}, "misfire_policy"),
        ({"catchup_limit": -1}, "catchup_limit"),
        ({"callback_method": "GET"}, "callback_method"),
        ({"callback_timeout_sec": 0}, "callback_timeout_sec"),
        ({"status": "ON"}, "status"),
    ],
)
async def test_a_wrong_field_is_named_and_nothing_is_stored(world: World, fields: dict[str, Any], field: str) -> None:
    """C-26, C-38, C-62, C-82, C-94, C-118, C-123: limits and enums of the table, INVALID_ARGUMENT with the field."""
    body = {name: value for name, value in {**PHASE_ONE, **fields}.items() if value is not None}
    assert list(problems(await world.post("/api/v1/tasks", body))) == [field]
    assert await world.seen("/api/v1/tasks?status=ALL") == []


async def test_every_problem_is_told_at_once(world: World) -> None:
    body = {**PHASE_ONE, "cron_expr": "x", "timezone": "Mars", "target_url": "nowhere", "headers": {"a b": "c"}}
    said = problems(await world.post("/api/v1/tasks", body))
    assert set(said) == {"cron_expr", "timezone", "target_url", "headers.a b"}


async def test_what_is_no_json_is_told_apart_from_a_wrong_field(world: World) -> None:
    """C-82, C-116, C-117, C-118: INVALID_JSON and INVALID_ARGUMENT, in one body with both spellings of an error."""
    answer = await world.call("POST", "/api/v1/tasks", body=b"{", headers={"Content-Type": "application/json"})
    assert refused(answer) == (400, "INVALID_JSON")
    assert refused(await world.post("/api/v1/tasks", {"description": "no name"})) == (400, "INVALID_ARGUMENT")
    wrong = await world.post("/api/v1/tasks", {"name": 5}, headers={"X-Request-Id": "abc"})
    assert (wrong.json()["request_id"], wrong.headers["x-request-id"]) == ("abc", "abc")


@pytest.mark.parametrize("path", ["/api/v1/tasks/abc", "/api/v1/tasks/0", "/api/v1/tasks/-1", "/api/v1/runs/x1"])
async def test_an_id_that_is_none_is_told_apart_from_one_that_is_not_there(world: World, path: str) -> None:
    """C-85, C-98, C-118, X-15: INVALID_ID is 400, NOT_FOUND is 404."""
    assert refused(await world.get(path)) == (400, "INVALID_ID")
    assert refused(await world.get(path.rpartition("/")[0] + "/999")) == (404, "NOT_FOUND")


async def test_what_is_not_there_is_not_found_by_any_verb(world: World) -> None:
    """C-85, C-88, C-90, C-98."""
    for answer in (
        await world.get("/api/v1/tasks/9"),
        await world.put("/api/v1/tasks/9", PHASE_ONE),
        await world.patch("/api/v1/tasks/9", {"description": "x"}),
        await world.patch("/api/v1/tasks/9/enable"),
        await world.patch("/api/v1/tasks/9/disable"),
        await world.delete("/api/v1/tasks/9"),
        await world.post("/api/v1/tasks/9/trigger"),
        await world.get("/api/v1/tasks/9/runs"),
        await world.get("/api/v1/runs/9"),
        await world.post("/api/v1/runs/9/cancel"),
        await world.get("/api/v1/runs/9/callbacks"),
    ):
        assert refused(answer) == (404, "NOT_FOUND")


async def test_a_name_is_taken_once_and_free_again_after_the_delete(any_world: World) -> None:
    """C-58, C-61, C-90, X-14: ALREADY_EXISTS; a deleted task is gone from every list, and its name may be had again."""
    world = any_world
    first = await world.task(name="same", cron_expr="* * * * * *")
    taken = await world.post("/api/v1/tasks", {**PHASE_ONE, "name": "same"})
    assert refused(taken) == (409, "ALREADY_EXISTS")
    other = await world.task(name="other")
    assert refused(await world.patch(f"/api/v1/tasks/{other}", {"name": "same"})) == (409, "ALREADY_EXISTS")
    assert ok(await world.delete(f"/api/v1/tasks/{first}")) == {"deleted": True}
    assert refused(await world.get(f"/api/v1/tasks/{first}")) == (404, "NOT_FOUND")
    assert refused(await world.delete(f"/api/v1/tasks/{first}")) == (404, "NOT_FOUND")
    await world.advance(2)
    assert world.sink.count == 0
    assert await world.task(name="same") != first
    [row] = await world.store.get_jobs([first])
    assert row.deleted_at is not None


async def test_the_list_shows_enabled_tasks_unless_it_is_asked_otherwise(world: World) -> None:
    """C-83, C-84, X-21: a bare array, filters by status and name, pages, totals in headers."""
    for n in range(1, 26):
        await world.task(name=f"report {n:02}" if n <= 22 else f"other {n}")
    ok(await world.patch("/api/v1/tasks/3/disable"))
    every = await world.get("/api/v1/tasks")
    assert [task["ID"] for task in every.json()] == [1, 2, *range(4, 26)]
    assert (every.headers["x-total-count"], every.headers["x-page"], every.headers["x-page-size"]) == (
        "24",
        "1",
        "1000",
    )
    assert [task["ID"] for task in await world.seen("/api/v1/tasks?status=DISABLED")] == [3]
    assert len(await world.seen("/api/v1/tasks?status=ALL")) == 25
    paged = await world.get("/api/v1/tasks?status=ALL&page=2")
    assert [task["ID"] for task in paged.json()] == [21, 22, 23, 24, 25]
    assert (paged.headers["x-total-count"], paged.headers["x-page"], paged.headers["x-page-size"]) == ("25", "2", "20")
    named = await world.get("/api/v1/tasks?status=ENABLED&name=REPORT&page=3&page_size=10")
    assert ([task["ID"] for task in named.json()], named.headers["x-total-count"]) == ([22], "21")
    assert refused(await world.get("/api/v1/tasks?page_size=201")) == (400, "INVALID_ARGUMENT")
    assert refused(await world.get("/api/v1/tasks?status=on")) == (400, "INVALID_ARGUMENT")


CHANGES: list[dict[str, Any]] = [
    {"name": "new"},
    {"description": "更新描述"},
    {"timezone": "Asia/Shanghai"},
    {"exec_type": "ASYNC"},
    {"http_method": "DELETE"},
    {"target_url": "http://t.test/new"},
    {"headers": {"X-New": "1"}},
    {"headers": {}},
    {"body_template": "new"},
    {"body_template": ""},
    {"timeout_seconds": 77},
    {"retry_policy": {"max_retries": 1, "initial_delay": 0.5, "strategy": "fixed", "max_delay": 9}},
    {"max_concurrency": 0},
    {"concurrency_policy": "PARALLEL"},
    {"misfire_policy": "CATCH_UP_LIMITED"},
    {"catchup_limit": 9},
    {"callback_method": "PUT"},
    {"callback_timeout_sec": 10},
    {"status": "DISABLED"},
]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: "+".join(change))
async def test_every_field_can_be_changed_by_itself(world: World, change: dict[str, Any]) -> None:
    """C-60, C-87, C-88: PATCH changes what it says and nothing else, and counts the version."""
    ok(await world.post("/api/v1/tasks", DESIGN))
    before = await world.seen("/api/v1/tasks/1")
    await world.change(1, **change)
    after = await world.seen("/api/v1/tasks/1")
    assert {name: after[name] for name in change} == change
    assert after["Version"] == 2
    moved = {"version", "Version", "updated_at", "UpdatedAt", "next_run_time", "HeadersJSON", "RetryPolicyJSON"}
    pascal = {"HTTPMethod", "TargetURL"} | {"".join(part.title() for part in name.split("_")) for name in change}
    same = set(before) - set(change) - moved - pascal
    assert {name: after[name] for name in same} == {name: before[name] for name in same}


async def test_a_new_cron_is_normalised_and_counts_at_once(world: World) -> None:
    """C-22, C-88: `{"description", "cron_expr"}` as the document patches them."""
    task = await world.task()
    await world.change(task, description="更新描述", cron_expr="*/10 * * * * *")
    shown = await world.seen(f"/api/v1/tasks/{task}")
    assert (shown["CronExpr"], shown["next_run_time"]) == ("*/10 * * * * *", "2030-01-01T12:00:10Z")
    await world.advance(10)
    assert world.sink.count == 1


async def test_a_retry_policy_is_changed_piece_by_piece(world: World) -> None:
    ok(await world.post("/api/v1/tasks", DESIGN))
    await world.change(1, retry_policy={"max_retries": 7})
    shown = await world.seen("/api/v1/tasks/1")
    assert shown["retry_policy"] == {**DESIGN["retry_policy"], "max_retries": 7}  # type: ignore[dict-item]


async def test_put_replaces_the_whole_task(world: World) -> None:
    """C-87: what PUT does not say is the default again; it must say what a create must."""
    ok(await world.post("/api/v1/tasks", {**DESIGN, "status": "DISABLED", "callback_method": "PUT"}))
    assert set(problems(await world.put("/api/v1/tasks/1", {"description": "x"}))) == {
        "name",
        "cron_expr",
        "target_url",
    }
    assert ok(await world.put("/api/v1/tasks/1", PHASE_ONE)) == {"updated": True}
    shown = await world.seen("/api/v1/tasks/1")
    expected = {**PASCAL, **SNAKE, "Status": "DISABLED", "status": "DISABLED", "next_run_time": None}
    assert shown == {**expected, "Version": 2, "version": 2}


async def test_a_version_that_is_sent_must_be_the_stored_one(world: World) -> None:
    """C-60, X-17: opt-in, by the body or by If-Match; the version rises with every change."""
    task = await world.task()
    path = f"/api/v1/tasks/{task}"
    assert ok(await world.patch(path, {"description": "a", "version": 1})) == {"updated": True}
    assert refused(await world.patch(path, {"description": "b", "version": 1})) == (409, "VERSION_CONFLICT")
    assert refused(await world.put(path, {**PHASE_ONE, "Version": 1})) == (409, "VERSION_CONFLICT")
    stale = await world.patch(path, {"description": "b"}, headers={"If-Match": '"1"'})
    assert refused(stale) == (412, "VERSION_CONFLICT")
    assert ok(await world.patch(f"{path}/disable")) == {"status": "DISABLED"}
    assert (await world.seen(path))["Version"] == 3
    assert (await world.get(path)).headers["etag"] == '"3"'


async def test_a_task_is_switched_off_and_on(world: World) -> None:
    """C-32, C-66, C-89: at once, as often as one likes, and what the pause left out does not fire afterwards."""
    task = await world.task(cron_expr="*/5 * * * * *")
    await world.advance(5)
    assert ok(await world.patch(f"/api/v1/tasks/{task}/disable")) == {"status": "DISABLED"}
    assert ok(await world.patch(f"/api/v1/tasks/{task}/disable")) == {"status": "DISABLED"}
    await world.advance(12)
    assert world.sink.count == 1
    assert ok(await world.patch(f"/api/v1/tasks/{task}/enable")) == {"status": "ENABLED"}
    assert ok(await world.patch(f"/api/v1/tasks/{task}/enable")) == {"status": "ENABLED"}
    await world.advance(5)
    assert [run["ScheduledTime"] for run in await world.runs(task)] == ["2030-01-01T12:00:20Z", "2030-01-01T12:00:05Z"]


async def test_a_surface_finds_only_what_it_made(world: World) -> None:
    """R4: jobs of /api/v2 are no tasks, and tasks are jobs there."""
    made = ok(await world.post("/api/v2/jobs", {"name": "v2", "target": {"kind": "noop"}}))
    run = ok(await world.post(f"/api/v2/jobs/{made['id']}/runs", {}))
    assert await world.seen("/api/v1/tasks?status=ALL") == []
    for path in (f"/api/v1/tasks/{made['id']}", f"/api/v1/tasks/{made['id']}/runs", f"/api/v1/runs/{run['id']}"):
        assert refused(await world.get(path)) == (404, "NOT_FOUND")
    assert refused(await world.post(f"/api/v1/runs/{run['id']}/cancel")) == (404, "NOT_FOUND")
    task = await world.task()
    assert (await world.seen(f"/api/v2/jobs/{task}"))["surface"] == "tasks"


async def test_what_another_surface_made_of_a_task_can_still_be_shown(world: World) -> None:
    """/api/v2 may give a task a schedule or a target this surface has no words for."""
    task = await world.task()
    path = f"/api/v2/jobs/{task}"
    ok(await world.patch(path, {"schedule": {"kind": "every", "every": "1m"}}))
    assert (await world.seen(f"/api/v1/tasks/{task}"))["CronExpr"] == ""
    await world.change(task, description="still there")
    await world.change(task, cron_expr="0 9 * * *")
    assert (await world.seen(f"/api/v1/tasks/{task}"))["CronExpr"] == "0 0 9 * * *"
    ok(await world.patch(path, {"target": {"kind": "http", "config": {"url": "http://t.test/", "json": {"a": 1}}}}))
    assert (await world.seen(f"/api/v1/tasks/{task}"))["BodyTemplate"] == '{"a":1}'
    await world.change(task, body_template="text")
    ok(await world.patch(path, {"target": {"kind": "noop", "config": {}}}))
    assert (await world.seen(f"/api/v1/tasks/{task}"))["TargetURL"] == ""
    assert [shown["ID"] for shown in await world.seen("/api/v1/tasks")] == [task]


async def test_a_repeated_create_with_the_same_key_makes_one_task(world: World) -> None:
    headers = {"Idempotency-Key": "once"}
    first = await world.post("/api/v1/tasks", PHASE_ONE, headers=headers)
    again = await world.post("/api/v1/tasks", PHASE_ONE, headers=headers)
    assert (first.status, first.json()) == (again.status, again.json())
    assert len(await world.seen("/api/v1/tasks")) == 1


async def test_a_name_stays_unique_whoever_changes_it(world: World, sink: Sink) -> None:
    """C-58: also by way of /api/v2; and what a target is told is the task's number, whatever its name is made of."""
    task, other = await world.task(name="a\nb 🚀"), await world.task(name="other")
    taken = await world.patch(f"/api/v2/jobs/{other}", {"name": "a\nb 🚀"})
    assert (taken.status, taken.json()["code"]) == (409, "ALREADY_EXISTS")
    ok(await world.patch(f"/api/v2/jobs/{task}", {"name": "renamed"}))
    assert await world.task(name="a\nb 🚀") > other
    assert refused(await world.post("/api/v1/tasks", {**PHASE_ONE, "name": "renamed"})) == (409, "ALREADY_EXISTS")
    await world.change(task, name="a\nc")
    await world.trigger(task)
    await world.work()
    [request] = sink.requests
    assert (request.header("X-Task-Id"), request.header("X-Ksana-Job-Id")) == (str(task), str(task))
