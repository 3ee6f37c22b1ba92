"""What an outside witness saw: every delivery the sink recorded, and the rules it must obey."""

from collections import defaultdict
from typing import Any

from tests.kit.sink import Request


def check_deliveries(requests: list[Request], runs: list[dict[str, Any]]) -> None:
    """No slot fired twice, redeliveries only with a rising fence, every successful run delivered."""
    fences: dict[str, list[int]] = defaultdict(list)
    run_of_slot: dict[tuple[str, str], set[str]] = defaultdict(set)
    for request in requests:
        run_id = _header(request, "X-Ksana-Run-Id")
        slot = (_header(request, "X-Ksana-Job-Id"), _header(request, "X-Ksana-Scheduled-At"))
        fences[run_id].append(int(_header(request, "X-Ksana-Fence")))
        run_of_slot[slot].add(run_id)
        assert _header(request, "Idempotency-Key") == run_id
    doubled = {slot: ids for slot, ids in run_of_slot.items() if len(ids) > 1}
    assert not doubled, f"slots with more than one run: {doubled}"
    for run_id, seen in fences.items():
        assert seen == sorted(set(seen)), f"run {run_id} was delivered with fences {seen}"
    undelivered = [run["id"] for run in runs if run["state"] == "SUCCESS" and str(run["id"]) not in fences]
    assert not undelivered, f"successful runs the sink never saw: {undelivered}"
    unfinished = [run for run in runs if run["ended_at"] is None]
    assert not unfinished, f"runs that never ended: {unfinished[:3]}"


def _header(request: Request, name: str) -> str:
    value = request.header(name)
    assert value is not None, f"{name} is missing from {request}"
    return value
