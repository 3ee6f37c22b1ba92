"""What peers tell of a burst: how late they were, in milliseconds."""

from __future__ import annotations

import json


def tell(late: list[float]) -> None:
    """Print what came of it; `late` is in seconds."""
    ordered = sorted(late)
    told = {"p50_ms": ordered[len(ordered) // 2], "p99_ms": ordered[int(len(ordered) * 0.99)], "max_ms": ordered[-1]}
    print(json.dumps({name: seconds * 1000 for name, seconds in told.items()}), flush=True)
