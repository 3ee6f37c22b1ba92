"""What a rehearsal knows of functions that are away in threads."""

import threading

from ksana.domain.outcomes import Outcome
from ksana.testing.stage import WatchedPython
from ksana.testing.virtual_loop import VirtualLoop
from tests.targets.contexts import attempt_context


def test_time_stands_still_while_a_function_is_in_its_thread() -> None:
    loop, gate = VirtualLoop(), threading.Event()

    async def rehearse() -> list[object]:
        target, told = WatchedPython(loop, {"slow": gate.wait}), list[Outcome]()
        config = target.check({"function": "slow"})
        begun = [target.begin(attempt_context(), config, told.append) for _ in range(2)]
        assert loop.outside == 2
        assert not isinstance(begun[1], Outcome)
        begun[1].give_up()
        assert loop.outside == 1
        gate.set()
        await loop.at_rest()
        await target.close()
        return [loop.outside, *(outcome.result for outcome in told)]

    try:
        assert loop.run_until_complete(rehearse()) == [0, b"true"]
    finally:
        loop.close()
