"""A random life, interrupted by restarts: what is read back from the files is what the model has in mind."""

import pytest

from tests.stores.json.files import Place
from tests.stores.model import ModelStore
from tests.stores.test_model import Life

STEPS = 150


@pytest.mark.parametrize("seed", range(100, 102))
async def test_a_life_of_restarts_goes_as_in_the_model(place: Place, seed: int) -> None:
    store = place.store()
    await store.open()
    starts = {what: (await store.reserve_ids(what, 1)).stop for what in ("job", "run", "node")}
    life = Life(seed, store, ModelStore(starts, await store.identity()))
    for _ in range(STEPS):
        await life.step()
        if life.random.random() < 0.1:
            await store.close()
            # Nodes end with the process they are in.
            life.model._nodes.clear()
            life.model._taken.clear()
            await store.open()
            await life.look()
    assert len(life.runs) > STEPS / 4
    await store.close()
