"""Print and forced colours: bars, cells and keys remain readable."""

from collections.abc import Iterator

import pytest

from tests.browser.conftest import Opening
from tests.browser.pages import LOOKED_AT
from tests.browser.visits import Visit

EXACT = """() => [...document.querySelectorAll('.bar, .cells button')].filter(
  one => getComputedStyle(one).printColorAdjust !== 'exact').length"""


@pytest.fixture
def paper(opening: Opening) -> Iterator[Visit]:
    with opening(viewport={"width": 794, "height": 1123}) as seen:
        seen.page.emulate_media(media="print")
        yield seen


@pytest.mark.parametrize("name", ["overview", "map, asked", "root", "candidates", "waterfall", "shares", "project"])
def test_paper_has_what_the_page_tells_without_what_is_clicked(paper: Visit, name: str):
    page = paper.open(LOOKED_AT[name])
    assert page.locator("h1").is_visible()
    assert page.locator("nav[aria-label=Pages]").is_hidden()
    assert page.locator("form:not(.maps) input:visible").count() == 0
    assert page.evaluate(EXACT) == 0
    assert paper.overflow() <= 0
    if name.startswith("map"):
        assert page.locator(".cells button:visible").count() == page.locator(".cells button").count() > 0


def colours(seen: Visit, selector: str, property_: str) -> set[str]:
    script = "([selector, name]) => [...document.querySelectorAll(selector)].map(one => getComputedStyle(one)[name])"
    return set(seen.page.evaluate(script, [selector, property_]))


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_forced_colours_leave_bars_cells_and_keys_theirs(opening: Opening, scheme: str):
    """All other colours are the system's; axe takes them for the page's, so it is not run."""
    with opening(color_scheme=scheme, forced_colors="active") as seen:
        seen.open("/")
        assert colours(seen, ".bar .used", "fill").isdisjoint(colours(seen, ".bar .track", "fill"))
        seen.open("/map")
        assert len(colours(seen, ".map-key .scale i", "backgroundColor")) == 6
        assert len(colours(seen, ".cells button", "backgroundColor")) > 1
