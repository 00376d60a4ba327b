"""Without a mouse: the skip link, the focus order, and a form from the first key to the answer."""

import pytest

from tests.browser.conftest import Opening
from tests.browser.pages import LOOKED_AT
from tests.browser.visits import Visit

MAX_STOPS = 200


def tab(seen: Visit, times: int = 1) -> str:
    for _ in range(times):
        seen.page.keyboard.press("Tab")
    return seen.focus()


@pytest.mark.parametrize("name", LOOKED_AT)
def test_the_skip_link_comes_first_and_leads_past_the_navigation(opening: Opening, name: str):
    with opening() as seen:
        page = seen.open(LOOKED_AT[name])
        assert tab(seen) == "Skip to the content"
        page.wait_for_timeout(200)
        box = page.locator(".skip").bounding_box()
        assert box is not None
        assert box["y"] >= 0
        page.keyboard.press("Enter")
        tab(seen)
        outside = "() => document.activeElement.closest('header') !== null"
        assert page.evaluate(outside) is False


@pytest.mark.parametrize("name", LOOKED_AT)
def test_the_keyboard_reaches_everything_once_in_the_order_of_the_page(opening: Opening, name: str):
    with opening() as seen:
        page = seen.open(LOOKED_AT[name])
        script = """() => {
          const all = [...document.querySelectorAll('*')];
          return all.indexOf(document.activeElement);
        }"""
        reached = []
        for _ in range(MAX_STOPS):
            page.keyboard.press("Tab")
            place = page.evaluate(script)
            if page.evaluate("() => document.activeElement === document.body") or place in reached:
                break
            reached.append(place)
        assert reached == sorted(reached)
        links = page.locator("main a:visible").count()
        assert len(reached) >= links


def test_a_request_is_tried_with_the_keyboard_alone(opening: Opening):
    with opening() as seen:
        page = seen.open("/request")
        tab(seen)
        page.keyboard.press("Enter")
        assert tab(seen) == "query"
        page.keyboard.type("resources=VCPU:1")
        assert tab(seen) == "microversion"
        assert tab(seen) == "Try"
        with page.expect_navigation():
            page.keyboard.press("Enter")
        assert page.locator(".candidate").count() > 0


def test_the_form_is_opened_filled_in_and_sent_with_the_keyboard_alone(opening: Opening):
    with opening() as seen:
        page = seen.open("/request?query=resources%3DVCPU%3A1")
        page.get_by_label("Query string").focus()
        assert tab(seen, 3) == "Edit it in a form"
        page.keyboard.press("Enter")
        assert tab(seen) == "resources-0"
        page.keyboard.press("Control+A")
        page.keyboard.type("VCPU:2")
        with page.expect_navigation():
            page.keyboard.press("Enter")
        assert page.get_by_label("Query string").input_value() == "resources=VCPU:2"


def test_what_has_the_keyboard_shows_it(opening: Opening):
    with opening() as seen:
        page = seen.open("/request")
        tab(seen, 3)
        style = "() => getComputedStyle(document.activeElement).outlineStyle"
        assert page.evaluate(style) != "none"
