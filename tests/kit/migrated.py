"""Bringing a store's schema up: done once, and copied or emptied from there on."""

from ksana.stores.open import open_store


async def migrate(url: str) -> None:
    store = open_store(url)
    await store.open()
    await store.close()
