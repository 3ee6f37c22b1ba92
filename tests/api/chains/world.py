"""Chains on a clock that a test moves: the surfaces over real engines and a real store. Nodes of the type `work` do as
the test says; the others are the real ones."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, cast

from starlette.types import Receive, Send
from starlette.types import Scope as AsgiScope

from ksana.api import chains, ops, tasks, v2
from ksana.api.kit import KeyRing, Scope
from ksana.api.services import JobDefaults, Services
from ksana.api.stored import StoredAnswers, StoredKeys
from ksana.domain.keys import new_key
from ksana.domain.outcomes import SUCCESS, AttemptContext, Outcome, Verdict
from ksana.domain.ports import Target
from ksana.targets.builtin import FailTarget, PrintTarget
from ksana.targets.chains import ChainTarget
from tests.api.kit.client import Answer, Client
from tests.api.kit.shared import Seat, shared_app
from tests.kit.script import Reply, ScriptedTarget
from tests.kit.world import MakeStore, Node, World

NO = Outcome(Verdict.RETRY, error="said no")
HANGS = Reply(hangs=True)
NOBODY = "00000000-0000-0000-0000-000000000001"
ONCE = {"maxAttempts": 1}
SURFACES = (v2.surface, tasks.surface, chains.surface, ops.surface)


class _Work:
    """The script as a type of node, or in place of a network; it takes any cfg."""

    def __init__(self, kind: str, script: ScriptedTarget) -> None:
        self.kind = kind
        self._script = script

    def check(self, config: dict[str, Any]) -> dict[str, Any]:
        return config

    def awaits_callback(self, config: dict[str, Any], input: Any = None) -> bool:
        return False

    async def execute(self, context: AttemptContext, config: dict[str, Any]) -> Outcome:
        return await self._script.execute(context, config)

    async def close(self) -> None: ...


class Chains(World):
    """A world whose chains are made over HTTP."""

    def __init__(self, make_store: MakeStore, defaults: JobDefaults | None = None, **options: Any) -> None:
        super().__init__(make_store, **options)
        self._defaults = defaults or JobDefaults()
        self._keys = 0
        self._says: dict[str, list[Reply]] = {}
        self.sink.improvise = self._improvise
        self.client = Client(self.app)

    async def open(self) -> Chains:
        await super().open()
        self.ring = KeyRing(StoredKeys(self.store), lambda: 0.0)
        self.answers = StoredAnswers(self.store)
        return self

    async def node(self, name: str, **options: Any) -> Node:
        node = await super().node(name, **options)
        targets = cast(dict[str, Any], node.engine.targets)
        if "work" not in targets:
            given: list[Target] = [ChainTarget(), PrintTarget(), FailTarget()]
            given += [_Work(kind, node.target) for kind in ("work", "http")]
            targets |= {target.kind: target for target in given}
        return node

    # What nodes of the type work do

    def says(self, step: str, *replies: Reply | Outcome) -> None:
        """Say how the next attempts at a node go; then they succeed."""
        self._says[step] = [reply if isinstance(reply, Reply) else Reply(reply) for reply in replies]

    def _improvise(self, context: AttemptContext) -> Reply:
        replies = self._says.get(context.step, [])
        return replies.pop(0) if replies else Reply(SUCCESS)

    # Requests

    @property
    def services(self) -> Services:
        """What the node that is alive serves."""
        return Services(self.main.engine, "1.2.3", self._defaults, None)

    async def app(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        """The one app of this process, as it serves this world."""
        seat = Seat(self.services, self.answers, self.ring)
        await shared_app(seat, *SURFACES, version="1.2.3", allowed_hosts=("*",))(scope, receive, send)

    async def send(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        """One request; nothing is done about it yet."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return await self.client.call(method, path, json_body=body, headers=named)

    async def chain(self, nodes: Iterable[dict[str, Any]] = ({"id": "a"},), name: str = "", **said: Any) -> Any:
        """Make a chain and give its detail; what is said beyond name and nodes goes with them."""
        self._names += 1
        dag = dag_of(nodes, **said.pop("dag", {}))
        answer = await self.send("POST", "/api/v1/chains", {"name": name or f"c{self._names}", "dagJson": dag, **said})
        assert answer.status == 201, answer.body
        return answer.json()

    async def start(self, chain: Any, **body: Any) -> str:
        """Start a chain, and let everybody do what there is to do."""
        run_id: str = ok(await self.send("POST", f"/api/v1/chains/{chain['chainId']}:start", body or None))["runId"]
        await self.settle()
        return run_id

    async def act(self, path: str, body: Any = None) -> Any:
        """A POST below /api/v1/runs that must succeed, and all that comes of it; gives its answer."""
        answered = ok(await self.send("POST", f"/api/v1/runs/{path}", body))
        await self.settle()
        return answered

    async def seen(self, path: str) -> Any:
        return ok(await self.send("GET", path))

    async def status(self, run_id: str) -> str:
        status: str = (await self.seen(f"/api/v1/runs/{run_id}"))["status"]
        return status

    async def nodes_of(self, run_id: str) -> dict[str, Any]:
        """The nodes of a run by their ids."""
        return {node["nodeId"]: node for node in await self.seen(f"/api/v1/runs/{run_id}/nodes")}

    async def standing(self, run_id: str) -> tuple[str, dict[str, str]]:
        """How a run and its nodes stand."""
        nodes = await self.nodes_of(run_id)
        return await self.status(run_id), {id: node["status"] for id, node in nodes.items()}

    async def answer_node(self, run_id: str, node_id: str, outcome: Outcome = SUCCESS) -> None:
        """Let a node that hangs end."""
        [delivery] = [d for d in self.sink.running.values() if d.context.step == node_id]
        await self.answer(await self.run(delivery.run_id), outcome)

    async def key(self, *scopes: Scope) -> dict[str, str]:
        """Make an API key, known to the app at once, and give the headers it goes in."""
        self._keys += 1
        made = new_key(self._keys.to_bytes(40, "little"), name="a key", scopes=scopes, created_at=self.now)
        await self.store.add_key(made.stored)
        self.ring.forget()
        return {"X_API_Key": made.text}


def work(id: str, *needs: str, **said: Any) -> dict[str, Any]:
    """A node that does as the test says, once."""
    return {"id": id, "type": "work", "dependsOn": list(needs), "retry": ONCE, **said}


def dag_of(nodes: Iterable[dict[str, Any]], **said: Any) -> str:
    return json.dumps({"nodes": list(nodes), **said})


def ok(answer: Answer) -> Any:
    """The JSON of an answer that must be a success."""
    assert 200 <= answer.status < 300, answer.body
    return answer.json()


def refused(answer: Answer) -> tuple[int, str, str]:
    """The status, the code and the text of an error, whose body is as every error's on this surface."""
    body = answer.json()
    assert answer.status >= 400, body
    assert {"error", "code", "message", "request_id"} <= body.keys()
    assert body["error"] == body["message"]
    return answer.status, body["code"], body["error"]
