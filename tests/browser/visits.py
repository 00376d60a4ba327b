"""A visit to the console: one browser page, and everything that must not happen on it."""

import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import Browser, Page, Playwright, Route

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
DESK = (1280, 900)
PHONE = (360, 740)

SERIOUS = frozenset({"serious", "critical"})


def chromium_path() -> str | None:
    """Return where Chromium is installed, if it is."""
    return next(filter(None, map(shutil.which, NAMES)), None)


def launched(playwright: Playwright) -> Browser:
    """Start the machine's Chromium, without its sandbox, which needs more rights than root in a container has."""
    return playwright.chromium.launch(executable_path=chromium_path(), args=["--no-sandbox"])


@dataclass
class Visit:
    """An open page, and the errors that occurred on it."""

    url: str
    page: Page
    faults: list[str] = field(default_factory=list)
    overlooked: str | None = None

    def open(self, path: str, status: int = 200) -> Page:
        """Open a page of the console, which must answer with the given status."""
        # The browser logs every refusal as an error, even an expected one.
        self.overlooked = f"status of {status}" if status >= 400 else None
        response = self.page.goto(f"{self.url}/ui{path}")
        assert response is not None
        assert response.status == status, response.text()
        return self.page

    def note(self, fault: str) -> None:
        if self.overlooked is None or self.overlooked not in fault:
            self.faults.append(fault)

    def findings(self) -> list[str]:
        """Return axe's serious and critical findings about the page in its current state."""
        self.page.evaluate(AXE_SCRIPT)
        found: Mapping[str, Any] = self.page.evaluate("() => axe.run()")
        return [
            f"{each['id']} ({each['impact']}): {each['help']}: {[node['html'][:200] for node in each['nodes'][:3]]}"
            for each in found["violations"]
            if each["impact"] in SERIOUS
        ]

    def overflow(self) -> int:
        """Return by how many pixels the page is wider than its window."""
        width: int = self.page.evaluate("() => document.documentElement.scrollWidth - window.innerWidth")
        return width

    def focus(self) -> str:
        """Return the focused element's id, or its text."""
        told: str = self.page.evaluate(
            "() => { const e = document.activeElement; return e.id || e.name || e.textContent.trim(); }"
        )
        return told


@contextmanager
def visit(browser: Browser, url: str, *, picture: Path | None = None, **options: Any) -> Iterator[Visit]:
    """Open a page in a separate context that reaches nothing but the server; raise if anything went wrong.

    Args:
        browser: a running browser.
        url: the server.
        picture: the file for a picture of the page at the end.
        options: options of a Playwright context, such as ``color_scheme``.
    """
    context = browser.new_context(**{"viewport": {"width": DESK[0], "height": DESK[1]}, **options})
    try:
        seen = Visit(url, context.new_page())
        context.route("**/*", _only(url, seen.note))
        seen.page.on("console", lambda message: seen.note(message.text) if message.type == "error" else None)
        seen.page.on("pageerror", lambda error: seen.note(str(error)))
        yield seen
        if picture is not None:
            seen.page.screenshot(path=picture, full_page=True)
        assert seen.faults == []
    finally:
        context.close()


def _only(url: str, note: Callable[[str], None]) -> Callable[[Route], None]:
    def handle(route: Route) -> None:
        if route.request.url.startswith((f"{url}/", "data:")):
            route.continue_()
        else:
            note(f"asked for {route.request.url}")
            route.abort()

    return handle
