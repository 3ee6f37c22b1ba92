"""What observers are told: everything, once, in the order in which it happened, after the store has been asked."""

import asyncio
from typing import Any

from ksana.domain.claims import Claimed
from ksana.domain.states import Event, State
from ksana.engine.telling import Teller
from tests.kit.clock import START
from tests.stores.builders import SECOND, a_job, a_move, a_run


class Witness:
    def __init__(self) -> None:
        self.told: list[Any] = []

    def on_started(self, claimed: Any, now: Any) -> None:
        self.told.append(("started", [one.run.id for one in claimed], now))

    def on_moved(self, moves: Any, now: Any) -> None:
        self.told.append(("moved", [move.run.id for move, _ in moves], now))

    def on_lost(self, run_ids: Any, now: Any) -> None:
        self.told.append(("lost", sorted(run_ids), now))


def claimed(id: int) -> Claimed:
    return Claimed(a_run(id, state=State.RUNNING), a_job(1))


def result(id: int) -> Any:
    return a_move(claimed(id).run, Event.SUCCEED), a_job(1)


async def test_observers_hear_of_everything_in_order_a_few_rounds_later() -> None:
    witness: Any = Witness()
    teller = Teller([witness])
    teller.started(claimed(1), START)
    teller.started(claimed(2), START + SECOND)
    teller.moved([result(1), result(2)], {2}, START)
    teller.moved([], frozenset(), START)
    teller.started(claimed(1), START)
    assert witness.told == []
    for _ in range(4):
        await asyncio.sleep(0)
    assert witness.told == [
        ("started", [1, 2], START + SECOND),
        ("moved", [1], START),
        ("lost", [2], START),
        ("started", [1], START),
    ]


async def test_what_was_told_at_once_is_not_told_again() -> None:
    witness: Any = Witness()
    teller = Teller([witness])
    teller.started(claimed(1), START)
    teller.tell()
    teller.moved([result(1)], frozenset(), START)
    for _ in range(8):
        await asyncio.sleep(0)
    assert witness.told == [("started", [1], START), ("moved", [1], START)]
