"""``python -m tests.browser.screenshots``: the pictures of the README, of the demo cloud and one of 1,000 hosts."""

import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

from tests.browser.cloud import served_cloud, served_racks
from tests.browser.pages import LOOKED_AT
from tests.browser.visits import chromium_path, launched, visit

DIRECTORY = Path(__file__).parents[2] / "docs" / "images"
WIDTH, HEIGHT = 1120, 800

PICTURES = {
    "console-candidates.png": ("candidates", "light", None),
    "console-provider-tree.png": ("root", "dark", "Tree"),
}
"""A file -> the page, the colours, and the heading of the part to show, or None for a window's content."""


SCREEN = 1440, 900
MAP = "console-map.png"
"""The picture of the map of 1,000 hosts, with the card of one of them."""


def main(directory: Path) -> None:
    if chromium_path() is None:
        sys.exit("The pictures need Chromium (Debian's package chromium) on the PATH.")
    directory.mkdir(parents=True, exist_ok=True)
    _picture_map(directory / MAP)
    with tempfile.TemporaryDirectory() as place, served_cloud(Path(place)) as url, sync_playwright() as driver:
        browser = launched(driver)
        for name, (page, scheme, part) in PICTURES.items():
            with visit(browser, url, color_scheme=scheme, viewport={"width": WIDTH, "height": HEIGHT}) as seen:
                shown = seen.open(LOOKED_AT[page])
                heading = shown.get_by_role("heading", name=part or "", exact=True)
                pictured = shown.locator(".card", has=heading) if part else shown
                pictured.screenshot(path=directory / name)
            print(directory / name)
        browser.close()


def _picture_map(path: Path) -> None:
    with tempfile.TemporaryDirectory() as place, served_racks(Path(place)) as url, sync_playwright() as driver:
        browser = launched(driver)
        with visit(browser, url, color_scheme="light", viewport={"width": SCREEN[0], "height": SCREEN[1]}) as seen:
            shown = seen.open("/map?query=g1.large")
            shown.locator(".cells button.s").nth(2).hover()
            shown.locator(".host-card h2").wait_for()
            shown.screenshot(path=path)
        browser.close()
    print(path)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else DIRECTORY)
