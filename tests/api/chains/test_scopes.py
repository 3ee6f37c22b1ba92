"""Who may do what on this surface."""

from __future__ import annotations

from typing import Any, Final

from ksana.api.kit import Scope
from tests.api.chains.world import NOBODY, Chains, dag_of, work

CHAIN, RUN = "/api/v1/chains/1", f"/api/v1/runs/{NOBODY}"
NEW: Final = {"name": "n", "dagJson": dag_of([work("a")])}
CALLS: Final[list[tuple[Scope, str, str, Any]]] = [
    (Scope.CHAIN_READ, "GET", "/api/v1/chains", None),
    (Scope.CHAIN_READ, "GET", CHAIN, None),
    (Scope.CHAIN_WRITE, "POST", "/api/v1/chains", NEW),
    (Scope.CHAIN_WRITE, "PUT", CHAIN, {**NEW, "version": 1}),
    (Scope.CHAIN_WRITE, "POST", f"{CHAIN}:disable", None),
    (Scope.CHAIN_WRITE, "POST", f"{CHAIN}:enable", None),
    (Scope.RUN_WRITE, "POST", f"{CHAIN}:start", None),
    (Scope.RUN_READ, "GET", f"{CHAIN}/runs", None),
    (Scope.RUN_READ, "GET", RUN, None),
    (Scope.RUN_READ, "GET", f"{RUN}/nodes", None),
    (Scope.RUN_CONTROL, "POST", f"{RUN}:stop", None),
    (Scope.RUN_CONTROL, "POST", f"{RUN}/nodes/a:retry", None),
    (Scope.RUN_CONTROL, "POST", f"{RUN}/nodes/a:complete", None),
]


async def test_each_call_needs_its_own_scope(chains: Chains) -> None:
    """J-79: from the first key on. Before, nobody is asked for one, as every other test here shows (J-6)."""
    await chains.chain()
    scopes = sorted({call[0] for call in CALLS})
    only = {scope: await chains.key(scope) for scope in scopes}
    others = {scope: await chains.key(*(set(Scope) - {scope, Scope.ADMIN})) for scope in scopes}
    for scope, method, path, body in CALLS:
        assert (await chains.send(method, path, body)).status == 401
        assert (await chains.send(method, path, body, **others[scope])).status == 403
        assert (await chains.send(method, path, body, **only[scope])).status in (200, 201, 400)
