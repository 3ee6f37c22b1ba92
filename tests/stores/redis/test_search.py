"""Searches read what may fit, and not all there ever was."""

import pytest

from ksana.domain.archive import Section
from ksana.domain.queries import RunQuery
from ksana.domain.states import State
from ksana.stores.redis import search
from ksana.stores.redis.store import RedisStore
from tests.stores.builders import NOW, SECOND, a_run


async def test_a_span_of_a_long_history_is_found_without_the_rest(
    store: RedisStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "_FEW", 50)
    old = [a_run(n, state=State.SUCCESS, ended_at=NOW + n * SECOND) for n in range(1, 101)]
    others = [a_run(n, job_id=2, state=State.FAILED, ended_at=NOW + n * SECOND) for n in range(101, 104)]
    await store.restore(Section.RUNS, [*old, *others, a_run(104, due_at=NOW + 98 * SECOND), a_run(105)])
    read: list[int] = []
    real = search.values_of

    async def counted(*args: object) -> list[bytes]:
        values = await real(*args)  # type: ignore[arg-type]
        read.append(len(values))
        return values

    monkeypatch.setattr(search, "values_of", counted)
    page = await store.find_runs(RunQuery(job_id=1, since=NOW + 98 * SECOND, is_child=False))
    assert ([run.id for run in page.items], page.total) == ([104, 100, 99, 98], 4)
    wide = await store.find_runs(RunQuery(job_id=1, since=NOW, is_child=False))
    assert (wide.total, read) == (102, [8, 102])
