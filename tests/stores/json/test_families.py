"""Families in memory and in the files: worked out once, never trusted where they are wrong, there after a restart."""

import errno
from typing import Any

import msgspec
import pytest

from ksana.domain.chains import Chain
from ksana.domain.errors import StoreUnavailable
from ksana.domain.moves import Kept
from ksana.domain.states import State
from ksana.stores.json import chains, disk
from tests.stores.builders import NOW, a_job, a_move, a_run, claim, get, put
from tests.stores.families import FAIL, SUCCEED, a_chain_job, a_dag, begin, end, ends, shown
from tests.stores.json.files import Place


def refuse(*arguments: Any) -> None:
    raise OSError(errno.ENOSPC, "full")


async def test_a_chain_is_worked_out_once_however_long_it_is(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Any] = []

    def counted(*said: Any, **more: Any) -> Chain:
        made.append(said)
        return Chain(*said, **more)

    monkeypatch.setattr(chains, "Chain", counted)
    store = place.store()
    await store.open()
    await store.add_jobs([a_chain_job(1)])
    await begin(store, a_dag("s0", *[f"s{n}<s{n - 1}" for n in range(1, 20)]), first=100)
    for n in range(19):
        await end(store, 1, NOW, (), **{f"s{n}": SUCCEED})
    assert len(made) == 1
    [last] = await ends(store, 1, s19=FAIL)
    with monkeypatch.context() as patch:
        patch.setattr(disk, "write_whole", refuse)
        with pytest.raises(StoreUnavailable):
            await store.turn([last])
    # What it took for done never was: it is not believed again.
    await end(store, s19=SUCCEED)
    assert (await get(store, 1)).state is State.SUCCESS
    await store.close()


async def test_a_chain_goes_on_after_a_restart(place: Place) -> None:
    store = place.store()
    await store.open()
    await store.add_jobs([a_chain_job(1)])
    await begin(store)
    await end(store, a=SUCCEED)
    before = await store.children(1)
    await store.close()
    await store.open()
    assert await store.children(1) == before
    await end(store, b=SUCCEED, c=FAIL)
    assert await shown(store) == "FAILED: a=SUCCESS b=SUCCESS c=FAILED d=SKIPPED"
    await store.close()


async def test_what_is_kept_of_a_run_stands_where_the_run_does(place: Place) -> None:
    store = place.store()
    await store.open()
    await store.add_jobs([a_job(1)])
    await put(store, a_run(1))
    [one] = await claim(store)
    for n in range(3):
        await store.keep_checkpoint(1, one.run.epoch, b"%d" % n)
    # A checkpoint that changes all the time leaves no trail.
    assert "history" not in place.read()
    assert [entry["run_id"] for entry in place.read()["kept"]] == [1]
    await store.close()
    await store.open()
    assert await store.kept([1]) == {1: Kept(run_id=1, checkpoint=b"2")}
    await store.turn([msgspec.structs.replace(a_move(one.run, SUCCEED), artifact=b"[1]")])
    assert "kept" not in place.read()
    await store.close()
    await store.open()
    assert await store.kept([1]) == {1: Kept(run_id=1, artifact=b"[1]", checkpoint=b"2")}
    await store.close()


async def test_a_plan_that_cannot_be_read_holds_up_nobody_else(place: Place, caplog: pytest.LogCaptureFixture) -> None:
    store = place.store()
    await store.open()
    await store.add_jobs([a_chain_job(1)])
    await begin(store, a_dag("a"))
    await begin(store, a_dag("b"), 2)
    await store.close()
    document = place.read()
    for run in document["runs"]:
        if run["id"] == 1:
            run["input"] = ""
    place.write(document)
    await store.open()
    await store.turn([*await ends(store, 1, a=SUCCEED), *await ends(store, 2, b=SUCCEED)])
    assert (await shown(store, 1), await shown(store, 2)) == ("RUNNING: a=SUCCESS", "SUCCESS: b=SUCCESS")
    assert "run 1 cannot go on" in caplog.text
    await store.close()
