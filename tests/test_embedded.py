"""A program that is its own server: `python app.py` runs what is written down in it."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from ksana import Item, Ksana
from ksana.domain import items
from ksana.domain.errors import InvalidArgument, InvalidState
from ksana.domain.items import NewItem
from ksana.domain.outcomes import AttemptContext
from ksana.domain.queries import JobQuery, RunQuery
from ksana.domain.runs import Run
from ksana.domain.states import State
from tests.cli.nodes import BARE_NAMES, Node, command, serving
from tests.kit.processes import DEADLINE, program

APP = """
from ksana import Ksana

app = Ksana("sqlite:shop.db", workers=2)

@app.every("100ms")
def ping():
    return "pong"

@app.cron("0 9 * * 1-5", tz="Asia/Shanghai", retries=3, overlap="skip")
async def report(run):
    return str(run.planned_at)

if __name__ == "__main__":
    app.serve(port=0)
"""


async def test_a_program_with_jobs_serves_them_until_it_is_told_to_stop(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(APP)
    bare = dict.fromkeys(BARE_NAMES, "")
    async with program(sys.executable, "app.py", directory=tmp_path, environment=bare) as process:
        node = Node(process, await process.url())
        _, page = await node.call("GET", "/api/v2/jobs?surface=code")
        jobs = {job["name"]: job for job in page["items"]}
        assert jobs["report"]["schedule"]["timezone"] == "Asia/Shanghai"
        await node.until(f"/api/v2/runs?job_id={jobs['ping']['id']}&state=SUCCESS", lambda seen: seen["total"] >= 2)
        assert await process.stop() == 0
    assert "2 workers" in process.output


async def test_functions_run_beside_what_else_a_program_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    app = Ksana(f"sqlite:///{tmp_path}/shop.db")
    met = asyncio.Event()

    @app.at("2020-01-01T00:00:00Z")
    def too_late() -> None: ...

    @app.every("100ms", kwargs={"word": "hello"})
    async def greet(run: AttemptContext, word: str) -> str:
        met.set()
        return word

    async with asyncio.timeout(DEADLINE), app.running() as engine:
        await met.wait()
        missed: list[Run] = []
        while not missed:
            missed = (await engine.store.find_runs(RunQuery(states=frozenset({State.MISSED})))).items
    assert [run.state for run in missed] == [State.MISSED]


def test_a_setting_nobody_knows_is_refused_when_it_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidArgument, match="wrokers"):
        Ksana(wrokers=3).serve()
    assert list(tmp_path.iterdir()) == []


async def test_what_a_function_saves_its_next_attempt_finds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    app = Ksana(f"sqlite:///{tmp_path}/shop.db")
    found = asyncio.get_running_loop().create_future()

    @app.every("1h", retries=1, backoff="1ms")
    def climb(run: AttemptContext) -> None:
        if run.attempt == 1:
            run.save({"height": 3})
            raise ValueError("slipped")
        asyncio.run_coroutine_threadsafe(told(run.checkpoint), loop)

    async def told(checkpoint: object) -> None:
        found.set_result(checkpoint)

    loop = asyncio.get_running_loop()
    async with app.running() as engine, asyncio.timeout(DEADLINE):
        [job] = (await engine.store.find_jobs(JobQuery(surface="code"))).items
        await engine.runs.trigger(job.id)
        assert await found == {"height": 3}


WORKER = """
from ksana import Ksana

app = Ksana("sqlite:shop.db", workers=2)

@app.every("100ms", queue="chores")
def ping():
    return "pong"

@app.handler("mail")
def mail(item):
    return {"to": item.payload}

@app.handler("sms")
def sms(item):
    return "sent"
"""


async def test_a_worker_runs_the_jobs_and_handlers_of_an_app_where_it_keeps_them(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(WORKER)
    async with serving(tmp_path, "--store", "sqlite:shop.db") as node:
        _, text = await node.call("POST", "/scheduler/jobs", {"queue": "sms"})
        _, letter = await node.call("POST", "/scheduler/jobs", {"queue": "mail", "payload": "x"})
        queues = ("--queue", "chores", "--queue", "mail")
        async with command("worker", "shop:app", *queues, directory=tmp_path) as worker:
            await node.until(f"/scheduler/jobs/{letter['job_id']}", lambda seen: seen["output"] == {"to": "x"})
            await node.until("/api/v2/runs?name=ping&state=SUCCESS", lambda seen: seen["total"] >= 2)
            assert (await node.call("GET", f"/scheduler/jobs/{text['job_id']}"))[1]["status"] == "queued"
            assert await worker.stop() == 0


async def test_what_the_command_line_says_wins_over_what_the_app_says(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(WORKER)
    async with command("worker", "shop:app", "--store", "sqlite:other.db", directory=tmp_path) as worker:
        await worker.line("working for .*other.db")
        assert await worker.stop() == 0
    assert not (tmp_path / "shop.db").exists()


async def test_handlers_work_beside_what_else_a_program_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    app = Ksana(f"sqlite:///{tmp_path}/shop.db")
    got: asyncio.Future[Item] = asyncio.get_running_loop().create_future()

    @app.handler("mail")
    async def mail(item: Item) -> None:
        got.set_result(item)

    async with asyncio.timeout(DEADLINE), app.running() as engine:
        await engine.queue.enqueue([NewItem(queue="mail", item=items.Item({"to": "x"}))])
        assert (await got).payload == {"to": "x"}
        with pytest.raises(InvalidState, match="running already"):
            async with app.running():
                pass
