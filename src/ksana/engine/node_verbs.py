"""What people do to nodes: have one drain, and let it work again."""

from __future__ import annotations

from ksana.domain.errors import NotFound
from ksana.domain.nodes import NodeInfo
from ksana.domain.ports import Store
from ksana.engine.recording import Recorder


class NodeVerbs:
    """Drain, and undo it. The node learns of it with its next beat."""

    def __init__(self, store: Store, recorder: Recorder) -> None:
        self._store = store
        self._recorder = recorder

    async def get(self, node_id: int) -> NodeInfo:
        for node in await self._store.nodes():
            if node.id == node_id:
                return node
        raise NotFound(f"there is no node {node_id}")

    async def drain(self, node_id: int, is_draining: bool = True) -> NodeInfo:
        """Have a node take on nothing more and end what it has, or work again. What it is told already changes
        nothing."""
        before = await self.get(node_id)
        if before.draining == is_draining:
            return before
        await self._store.set_draining(node_id, is_draining)
        after = await self.get(node_id)
        await self._recorder.node("node.drain" if is_draining else "node.resume", before, after)
        return after
