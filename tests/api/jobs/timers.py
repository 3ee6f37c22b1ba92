"""Timers on a clock that a test moves: the surface over real engines and a real store; what is called, obeys a script.

The requests of a timer go to the script in place of a network; their configs are checked as the real target does.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, cast

from ksana.api import jobs, ops, v2
from ksana.api.services import JobDefaults, Services
from ksana.api.stored import StoredAnswers
from ksana.domain.outcomes import AttemptContext, Outcome, Verdict
from ksana.domain.times import format_instant
from ksana.engine.engine import Engine
from ksana.targets.http.config import checked
from tests.api.kit.client import Answer, Client
from tests.api.kit.shared import Seat, shared_app
from tests.kit.script import ScriptedTarget
from tests.kit.world import MakeStore, Node, World

HTTP = {"method": "GET", "url": "https://example.com/ping"}
REFUSED = Outcome(Verdict.FAIL, error="answered 404")
UNWELL = Outcome(Verdict.RETRY, error="answered 500")


class _HttpFace:
    """The script as the target of HTTP jobs."""

    kind = "http"

    def __init__(self, script: ScriptedTarget) -> None:
        self._script = script

    def check(self, config: dict[str, Any]) -> dict[str, Any]:
        return checked(config).plain()

    def awaits_callback(self, config: dict[str, Any], input: Any = None) -> bool:
        return False

    async def execute(self, context: AttemptContext, config: dict[str, Any]) -> Outcome:
        return await self._script.execute(context, config)

    async def close(self) -> None: ...


class Timers(World):
    """A world whose jobs are made over HTTP."""

    def __init__(self, make_store: MakeStore, defaults: JobDefaults | None = None, **options: Any) -> None:
        super().__init__(make_store, **options)
        self._defaults = defaults or JobDefaults()
        self._client: tuple[Engine, Client] | None = None

    async def node(self, name: str, **options: Any) -> Node:
        node = await super().node(name, **options)
        targets = cast(dict[str, Any], node.engine.targets)
        targets.setdefault("http", _HttpFace(node.target))
        return node

    @property
    def client(self) -> Client:
        """A caller of the node that is alive."""
        engine = self.main.engine
        if self._client is None or self._client[0] is not engine:
            seat = Seat(Services(engine, "1.2.3", self._defaults, None), StoredAnswers(engine.store))
            self._client = engine, Client(shared_app(seat, jobs.surface, v2.surface, ops.surface))
        return self._client[1]

    async def send(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        """One request, and then everything that is due because of it."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        answer = await self.client.call(method, path, json_body=body, headers=named)
        await self.settle()
        return answer

    async def create(self, **said: Any) -> Any:
        """Make a timer and give the answer's job."""
        answer = await self.send("POST", "/jobs", {"name": "t", "http": HTTP, **said})
        assert answer.status == 201, answer.body
        return answer.json()

    async def every(self, every: str, **said: Any) -> Any:
        """A timer at intervals; what belongs to its schedule may be said too."""
        schedule = {"kind": "every", "every": every}
        for name in ("start_at", "jitter"):
            if name in said:
                schedule[name] = said.pop(name)
        return await self.create(schedule=schedule, **said)

    async def once(self, at: datetime, **said: Any) -> Any:
        return await self.create(schedule={"kind": "once", "run_at": text_of(at)}, **said)

    async def look(self, job: Any) -> Any:
        """The job as it is shown now."""
        return await self.seen(f"/jobs/{job['id']}")

    async def seen(self, path: str) -> Any:
        answer = await self.client.get(path)
        assert answer.status == 200, answer.body
        return answer.json()

    async def patch(self, job: Any, **said: Any) -> Any:
        answer = await self.send("PATCH", f"/jobs/{job['id']}", said)
        assert answer.status == 200, answer.body
        return answer.json()

    async def do(self, job: Any, verb: str) -> Any:
        """run-now, pause or resume."""
        answer = await self.send("POST", f"/jobs/{job['id']}/{verb}")
        assert answer.status == 200, answer.body
        return answer.json()

    async def history(self, job: Any) -> list[Any]:
        """The runs of a timer, oldest first."""
        runs: list[Any] = await self.seen(f"/jobs/{job['id']}/runs")
        return runs[::-1]

    def later(self, seconds: float) -> str:
        """An instant so many seconds from now, as text."""
        return text_of(self.now + timedelta(seconds=seconds))


def text_of(at: datetime) -> str:
    return format_instant(at, "micros")
