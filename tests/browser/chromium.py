"""How the tests start Chromium: without a screen, and with nothing of its own that goes out."""

from playwright.async_api import Browser, Playwright

_FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


async def launched(playwright: Playwright, program: str) -> Browser:
    return await playwright.chromium.launch(executable_path=program, args=_FLAGS)
