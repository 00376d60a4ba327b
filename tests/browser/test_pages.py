"""Every page as people see it: light and dark, at a desk and on a phone, with and without JavaScript."""

import pytest

from tests.browser.conftest import Opening
from tests.browser.pages import LOOKED_AT, forgotten
from tests.browser.visits import DESK, PHONE

every_page = pytest.mark.parametrize("name", LOOKED_AT)


def test_every_page_is_looked_at():
    assert forgotten() == set()


@every_page
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [DESK, PHONE], ids=["desk", "phone"])
def test_nothing_serious_keeps_anybody_from_using_a_page(
    opening: Opening, name: str, scheme: str, size: tuple[int, int]
):
    """The visit itself fails on an error on the console, and on a request to any other host."""
    with opening(color_scheme=scheme, viewport={"width": size[0], "height": size[1]}) as seen:
        seen.open(LOOKED_AT[name])
        assert seen.findings() == []
        assert seen.overflow() <= 0


@every_page
def test_pages_show_the_same_without_javascript(opening: Opening, name: str):
    with opening(java_script_enabled=False) as seen:
        page = seen.open(LOOKED_AT[name])
        plain = page.locator("h1, h2, h3, caption, dt, th").all_inner_texts()
    with opening() as seen:
        page = seen.open(LOOKED_AT[name])
        assert page.locator("h1, h2, h3, caption, dt, th").all_inner_texts() == plain
    assert plain


def test_colours_follow_the_system(opening: Opening):
    grounds = set()
    for scheme in ("light", "dark"):
        with opening(color_scheme=scheme) as seen:
            page = seen.open("/")
            grounds.add(page.evaluate("() => getComputedStyle(document.body).backgroundColor"))
    assert len(grounds) == 2


def test_a_page_that_is_not_there_is_told_in_the_frame(opening: Opening):
    with opening() as seen:
        page = seen.open("/nowhere", status=404)
        assert page.get_by_role("navigation", name="Pages").is_visible()
        assert seen.findings() == []


def test_the_navigation_leads_to_every_page_and_marks_where_one_is(opening: Opening):
    with opening() as seen:
        page = seen.open("/")
        names = page.get_by_role("navigation", name="Pages").get_by_role("link").all_inner_texts()
        assert names == ["Overview", "Map", "Providers", "Consumers", "Try a request", "Fair shares"]
        for name in names:
            page.get_by_role("navigation", name="Pages").get_by_role("link", name=name).click()
            page.wait_for_load_state()
            assert page.locator("nav a[aria-current]").inner_text() == name


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_tree_is_drawn_as_a_graph_where_scripts_run(opening: Opening, scheme: str):
    with opening(color_scheme=scheme) as seen:
        page = seen.open(LOOKED_AT["root"])
        page.get_by_role("button", name="Graph").click()
        for name in ("numa0", "gpu0", "nic1"):
            assert page.locator("svg").get_by_text(name).first.is_visible()
        assert seen.findings() == []
        assert seen.overflow() <= 0
        page.get_by_role("button", name="Boxes").click()
        assert page.locator("details.below").first.is_visible()
