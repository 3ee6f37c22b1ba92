"""Chains and calls of URLs in code: what is written down is a job like any other."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from ksana import Ksana
from ksana.domain.errors import AlreadyExists, InvalidArgument
from ksana.domain.graph import read_graph
from ksana.domain.outcomes import AttemptContext
from ksana.domain.policies import OverlapRule
from ksana.domain.queries import JobQuery
from ksana.domain.schedules import CronSchedule, Every
from tests.kit.processes import DEADLINE


def an_app() -> Ksana:
    app = Ksana()
    nightly = app.chain("nightly", cron="0 2 * * *", tz="Asia/Shanghai", params={"day": "today"})

    @nightly.node
    def pull() -> dict[str, int]:
        return {"rows": 42}

    @nightly.node(needs=pull, retries=0, timeout="5m")
    async def clean(pull: dict[str, int]) -> int:
        return pull["rows"] - 1

    @nightly.node(needs=[pull, "clean"], when="clean.artifact > 0")
    def count(clean: int, run: AttemptContext) -> list[Any]:
        return [clean, run.artifacts["pull"], run.params["day"]]

    nightly.step("say", "echo", {"message": "{{count.artifact}}"}, needs=count)
    assert pull() == {"rows": 42}
    return app


def test_a_chain_in_code_is_a_dag_with_its_functions() -> None:
    app = an_app()
    definition = app.definitions["nightly"]
    assert definition.spec.schedule == CronSchedule("0 2 * * *", "Asia/Shanghai")
    assert definition.spec.overlap.rule is OverlapRule.PARALLEL
    assert sorted(app.functions) == ["nightly.clean", "nightly.count", "nightly.pull"]
    graph = read_graph(definition.spec.target.config)
    assert [(step.id, step.kind, step.needs) for step in graph.steps] == [
        ("pull", "python", ()),
        ("clean", "python", (0,)),
        ("count", "python", (0, 1)),
        ("say", "echo", (2,)),
    ]
    assert graph.steps[1].config == {"function": "nightly.clean", "kwargs": {"pull": "{{pull.artifact}}"}}
    assert (graph.steps[1].retry.max_attempts, graph.steps[1].timeouts.total.seconds) == (1, 300)
    assert graph.defaults == {"day": "today"}


def test_a_call_in_code_is_a_job_of_the_http_target() -> None:
    app = Ksana()
    app.http("sync", "post https://svc.internal/sync", every="5m", json={"run": "{{run_id}}"}, callback="2m", retries=1)
    app.http("ping", "https://svc.internal/ping")
    sync, ping = app.definitions["sync"].spec, app.definitions["ping"].spec
    assert sync.target.config == {
        "method": "POST",
        "url": "https://svc.internal/sync",
        "json": {"run": "{{run_id}}"},
        "mode": "async",
    }
    assert isinstance(sync.schedule, Every)
    assert (sync.timeouts.callback.seconds, sync.retry.max_attempts) == (120, 2)
    assert (ping.target.config["method"], ping.schedule) == ("GET", None)
    assert app.functions == {}


def test_what_cannot_work_is_refused_at_the_line_that_says_it() -> None:
    app = Ksana()
    chain = app.chain("c")
    with pytest.raises(InvalidArgument, match="no node of c yet"):
        chain.node(needs="nothing")(print)
    with pytest.raises(InvalidArgument, match="nothing a node knows"):
        chain.node(colour="red")(print)  # type: ignore[call-overload]
    chain.step("a", "noop")
    with pytest.raises(AlreadyExists):
        chain.step("a", "noop")
    with pytest.raises(AlreadyExists):
        app.chain("c")
    with pytest.raises(InvalidArgument, match="one schedule"):
        app.http("h", "https://x", cron="* * * * *", every="5m")
    with pytest.raises(InvalidArgument, match="nothing a job knows"):
        app.http("h", "https://x", colour="red")  # type: ignore[call-arg]


async def test_a_chain_in_code_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    app = Ksana(f"sqlite:///{tmp_path}/code.db")
    app.include(an_app())
    after = app.chain("after")
    found: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    after.step("first", "chain", {"chain": "nightly", "params": {"day": "monday"}})

    @after.node(needs="first")
    async def last(first: Any) -> None:
        found.set_result(first)

    async with app.running() as engine, asyncio.timeout(DEADLINE):
        [job] = (await engine.store.find_jobs(JobQuery(surface="code", ref="after"))).items
        await engine.chains.start(job.id)
        assert await found == {"say": [41, {"rows": 42}, "monday"]}
