"""One Chromium for each worker, one real server for each module, a window of its own for each test."""

from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
import pytest_asyncio
from playwright.async_api import Browser, async_playwright, expect

from tests.browser.chromium import launched
from tests.browser.visits import DEADLINE_MS, Visit, open_visit
from tests.cli.nodes import Node, serving
from tests.conftest import Handed
from tests.kit.sink import Sink

Visiting = Callable[..., Awaitable[Visit]]

expect.set_options(timeout=DEADLINE_MS)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser(handed: Handed) -> AsyncIterator[Browser]:
    if handed.browser.url is None:
        pytest.skip(f"no browser: {handed.browser.how}")
    async with async_playwright() as playwright:
        browser = await launched(playwright, handed.browser.url)
        yield browser
        await browser.close()


@pytest_asyncio.fixture(loop_scope="session")
async def visiting(browser: Browser) -> AsyncIterator[Visiting]:
    """Open windows: `await visiting(node)`; what their consoles did wrong fails the test at its end."""
    opened: list[Visit] = []

    async def visiting(node: Node, **wishes: object) -> Visit:
        opened.append(await open_visit(browser, node.url, **wishes))
        return opened[-1]

    yield visiting
    for visit in opened:
        await visit.close()
    assert [fault for visit in opened for fault in visit.faults] == []


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def node(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Node]:
    """The server of a module: its tests share it, so each makes what it looks at under names of its own."""
    async with serving(tmp_path_factory.mktemp("node")) as node:
        yield node


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def target() -> AsyncIterator[Sink]:
    """What the jobs of a module call."""
    async with Sink() as sink:
        yield sink
