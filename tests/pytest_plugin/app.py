"""The program that is tried out."""

from __future__ import annotations

import asyncio
from datetime import timedelta

from ksana import Ack, Item, Ksana, Retry
from ksana.domain.outcomes import AttemptContext

app = Ksana()
a_while = asyncio.sleep
"""In the time of whoever tries it out, which is none."""
reports: list[str] = []


@app.cron("0 9 * * 1-5", tz="Asia/Shanghai", retries=3, backoff="5s..60s", overlap="skip")
async def report(run: AttemptContext) -> str:
    reports.append(f"{run.planned_at:%F}")
    return reports[-1]


app.http(
    "sync",
    "POST https://svc.internal/sync",
    cron="0 */5 * * * *",
    json={"run": "{{run_id}}"},
    retries=3,
    backoff="5s",
)

nightly = app.chain("nightly", cron="0 2 * * *")


@nightly.node
def pull() -> dict[str, int]:
    return {"rows": 42}


@nightly.node(needs=pull, retries=2, timeout="5m")
def clean(pull: dict[str, int]) -> int:
    return pull["rows"] - 1


nightly.http("load", "POST https://dw.internal/load", needs=clean, json={"rows": "{{clean.artifact}}"})


@app.every("30m")
def ping() -> str:
    return "pong"


@app.at("2026-03-27T02:00:00Z", timeout="1m")
async def nap() -> str:
    await a_while(20)
    return "rested"


@app.at("2026-03-27T03:00:00Z", timeout="10s", retries=1)
async def oversleep() -> None:
    await a_while(20)


@app.at("2026-03-27T04:00:00Z", retries=2, backoff="1m")
def third_time_lucky(run: AttemptContext) -> str:
    if run.attempt < 3:
        raise Retry(message="not yet")
    return "at last"


post = Ksana()


@post.handler("mail", concurrency=2)
async def mail(item: Item) -> Ack:
    if item.payload == "twice" and item.attempt == 0:
        raise Retry("5m", "not yet")
    await a_while(90)
    return Ack(output={"to": item.payload}, next_action_at=item.run_at + timedelta(days=7))


@post.handler("memory.verify")
def verify(item: Item) -> str:
    return f"{item.object_id} is fine"
