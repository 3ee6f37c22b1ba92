"""Who of the items that are due is handed out: limits of queues and keys, gates, budgets and caps of objects."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ksana.domain.errors import InvalidState
from ksana.domain.handing_out import HandingOut, Known
from ksana.domain.items import Item, Pull, new_item, stored_queue
from ksana.domain.limits import QueueSettings, Rate, has_room, taken
from ksana.domain.objects import MOVES, Epistemic, Gate, GovernedObject, Risk, UnknownType, spent, written_back
from ksana.domain.runs import Run

NOW = datetime(2030, 1, 1, tzinfo=UTC)
SECOND = timedelta(seconds=1)
OPEN = {"persona": Gate.PASS, "cognition": Gate.PASS}


def an_item(id: int, subject: str | None = None, type: str | None = None) -> Run:
    return new_item(id, "q", Item(), NOW, due_at=NOW, type=type, subject=subject)


def a_pull(limit: int = 10, now: datetime = NOW) -> Pull:
    return Pull(queue=stored_queue("q"), now=now, limit=limit, holder="w", until=now + SECOND)


def settings_of(**said: Any) -> QueueSettings:
    return QueueSettings(queue=stored_queue("q"), updated_at=NOW, **said)


def an_object(**said: Any) -> GovernedObject:
    return GovernedObject(type="memory", id="m", created_at=NOW, updated_at=NOW, **said)


def ids(handing: HandingOut) -> list[int]:
    return [run.id for run in handing.handed]


def test_a_paused_queue_hands_out_nothing_and_a_limit_leaves_room_for_what_is_missing() -> None:
    for said, held, expected in (
        ({"is_paused": True}, 0, []),
        ({"concurrency": 3}, 2, [1]),
        ({"concurrency": 3}, 3, []),
        ({"rate": Rate(2, SECOND)}, 9, [1, 2]),
        ({}, 9, [1, 2, 3, 4]),
    ):
        handing = HandingOut(a_pull(), settings_of(**said), held)
        handing.offer([an_item(n) for n in range(1, 5)])
        assert ids(handing) == expected, said
        assert handing.is_over == (len(expected) < 4)


def test_keys_are_counted_apart_and_what_has_no_room_is_passed_over() -> None:
    handing = HandingOut(a_pull(4), settings_of(key_concurrency=1))
    page = [an_item(n, subject) for n, subject in enumerate(["#a", "#a", "#b", "#c", None, None], 1)]
    assert handing.unknown(page) == ["#a", "#b", "#c"]
    handing.learn({"#b": Known(held=1)})
    handing.offer(page)
    assert ids(handing) == [1, 4, 5, 6]
    assert handing.is_over


@given(st.integers(1, 6), st.lists(st.integers(0, 1500), min_size=1, max_size=60))
def test_no_stretch_has_more_than_twice_its_rate_and_in_the_long_run_it_is_kept(count: int, waits: list[int]) -> None:
    """A bucket may be full when a stretch begins; what it lets through after that comes one step at a time."""
    rate, now, until = Rate(count, SECOND), NOW, None
    passed: list[datetime] = []
    for wait in waits:
        now += timedelta(milliseconds=wait)
        while has_room(rate, until, now):
            until = taken(rate, until, now)
            passed.append(now)
    assert len(passed) <= count + (now - NOW) / rate.step + 1
    assert len(passed) >= min(count, len(passed))
    for at in passed:
        assert sum(at <= other < at + SECOND for other in passed) <= 2 * count


def test_gates_hold_a_risky_object_back_and_nobody_else() -> None:
    """S-40, X-130: what nobody has judged is held back too; limit lets one through at a time."""
    risky = {"risk": Risk.HIGH}
    for said, expected in (
        ({}, [1, 2]),
        (risky, []),
        ({**risky, "gates": {"persona": Gate.PASS}}, []),
        ({**risky, "gates": OPEN}, [1, 2]),
        ({**risky, "gates": {**OPEN, "cognition": Gate.DEFER}}, []),
        ({**risky, "gates": {**OPEN, "cognition": Gate.BLOCK}}, []),
        ({**risky, "gates": {**OPEN, "persona": Gate.LIMIT}}, [1]),
        ({"risk": Risk.MEDIUM, "gates": {"persona": Gate.BLOCK}}, [1, 2]),
    ):
        handing = HandingOut(a_pull(), None)
        handing.learn({"memory/m": Known(an_object(**said))})
        handing.offer([an_item(1, "memory/m", "memory.decay"), an_item(2, "memory/m", "memory.decay")])
        assert ids(handing) == expected, said
        assert len(handing.blocked) == (0 if expected else 2)


def test_each_hand_out_spends_the_budget_of_what_is_uncertain() -> None:
    """S-41, S-42, X-131, X-132."""
    for said, type, expected in (
        ({"epistemic": Epistemic.UNCERTAIN}, "memory.verify", 2),
        ({"epistemic": Epistemic.UNCERTAIN, "budget": 5, "verified": 4}, "memory.revalidate", 1),
        ({"epistemic": Epistemic.UNCERTAIN, "budget": 0}, "memory.decay", 4),
        ({"epistemic": Epistemic.SUPPORTED, "budget": 0}, "memory.verify", 4),
        ({"unknown": UnknownType.ONTIC}, "memory.verify", 3),
        ({"unknown": UnknownType.ONTIC, "epistemic": Epistemic.UNCERTAIN, "budget": 9}, "memory.verify", 3),
        ({"unknown": UnknownType.EPISTEMIC}, "memory.verify", 4),
    ):
        handing = HandingOut(a_pull(), None)
        handing.learn({"memory/m": Known(an_object(**said))})
        handing.offer([an_item(n, "memory/m", type) for n in range(1, 5)])
        assert (len(handing.handed), len(handing.refused)) == (expected, 4 - expected), said
        after = handing.objects.get("memory/m", an_object(**said))
        assert after.version == 1 + (after.verified > 0 or after.tried > 0) * expected


def test_a_worker_may_say_only_what_its_action_can_lead_to() -> None:
    """S-34, S-38."""
    later = NOW + SECOND
    for action in ("verify", "revalidate", "decay", "archive", "reinstate-check", "unheard-of"):
        for before in Epistemic:
            for to in Epistemic:
                governed = an_object(epistemic=before)
                if to is before or to in MOVES.get(action, {}).get(before, ()):
                    after = written_back(governed, action, later, next_action_at=later, epistemic=to, evidence="aud")
                    assert (after.epistemic, after.version, after.evidence) == (to, 2, "aud")
                    assert (after.next_action_at, after.updated_at) == (later, later)
                else:
                    with pytest.raises(InvalidState, match=f"memory/m is {before}; {action} cannot make it {to}"):
                        written_back(governed, action, later, epistemic=to)
    assert written_back(an_object(), "decay", later).epistemic is Epistemic.UNASSESSED


def test_what_costs_nothing_leaves_the_object_as_it_is() -> None:
    governed = an_object(epistemic=Epistemic.SUPPORTED)
    assert spent(governed, "verify", NOW) is governed
    assert spent(an_object(epistemic=Epistemic.UNCERTAIN), "archive", NOW).verified == 0
