"""A visit: one person's browser window at one server, watched for what a console must never do.

Every request is written down, and so is every complaint of the browser, a breach of the content security policy among
them. A test that expects some of it says so with `forgives`; whatever else there was fails it at the end.
"""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urlsplit

from playwright.async_api import Browser, BrowserContext, ConsoleMessage, Locator, Page, Request

DEADLINE_MS = 20_000


class Visit:
    """A browser context with at least one page, at the console of one server."""

    def __init__(self, context: BrowserContext, page: Page, origin: str) -> None:
        self.context = context
        self.page = page
        self.origin = origin
        self.requests: list[str] = []
        self.loads = 0
        """How many documents were loaded: moving about inside the console loads none."""
        self.complaints: list[str] = []
        self._forgiven: list[str] = []
        context.on("request", self._note_request)
        context.on("console", self._note_message)
        context.on("weberror", lambda error: self.complaints.append(f"uncaught: {error.error}"))

    async def go(self, path: str = "", page: Page | None = None) -> Page:
        """Open a place of the console: `jobs`, `runs/3`, or its front."""
        page = page or self.page
        await page.goto(f"{self.origin}/console/{path}", wait_until="domcontentloaded")
        return page

    def button(self, name: str, within: Locator | None = None) -> Locator:
        return (within or self.page.locator("body")).get_by_role("button", name=name, exact=True)

    def link(self, name: str | re.Pattern[str]) -> Locator:
        return self.page.get_by_role("link", name=name, exact=isinstance(name, str))

    def heading(self, name: str | re.Pattern[str]) -> Locator:
        return self.page.get_by_role("heading", name=name, level=1)

    def forgives(self, pattern: str) -> None:
        """Complaints that match are what this test is about."""
        self._forgiven.append(pattern)

    def forget(self) -> None:
        """Begin anew, as if nothing had been seen so far."""
        self.requests.clear()
        self.complaints.clear()

    @property
    def faults(self) -> list[str]:
        """What should not have happened."""
        told = [said for said in self.complaints if not any(re.search(pattern, said) for pattern in self._forgiven)]
        return told + [f"left the origin: {url}" for url in self.requests if not self._is_ours(url)]

    async def close(self) -> None:
        await self.context.close()

    def _is_ours(self, url: str) -> bool:
        parts = urlsplit(url)
        return parts.scheme in ("data", "blob") or f"{parts.scheme}://{parts.netloc}" == self.origin

    def _note_request(self, request: Request) -> None:
        self.requests.append(request.url)
        self.loads += request.is_navigation_request()

    def _note_message(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.complaints.append(f"{message.type}: {message.text} ({message.location.get('url', '')})")


async def open_visit(browser: Browser, origin: str, **wishes: Any) -> Visit:
    """Open a window; the wishes are those of a browser context: `locale`, `timezone_id`, `color_scheme`."""
    wanted: dict[str, Any] = {"locale": "en-GB", "timezone_id": "UTC", "color_scheme": "light", **wishes}
    context = await browser.new_context(viewport={"width": 1280, "height": 800}, reduced_motion="reduce", **wanted)
    context.set_default_timeout(DEADLINE_MS)
    return Visit(context, await context.new_page(), origin)
