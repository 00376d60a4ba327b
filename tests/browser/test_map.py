"""The map of 1,000 hosts with domain names: one screen, a card where the pointer rests, arrow keys among the cells."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.browser.cloud import served_racks
from tests.browser.visits import PHONE, visit

ASKED = "/map?query=g1.large"


@pytest.fixture(scope="module")
def racks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with served_racks(tmp_path_factory.mktemp("racks")) as served:
        yield served


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_thousand_hosts_are_one_screen_without_a_finding(browser: Any, racks: str, scheme: str):
    with visit(browser, racks, color_scheme=scheme, viewport={"width": 1440, "height": 900}) as seen:
        page = seen.open(ASKED)
        assert page.locator(".cells button").count() == 1000
        bottom = page.evaluate("() => document.querySelector('.maps').getBoundingClientRect().bottom")
        assert bottom <= 900
        assert seen.overflow() <= 0
        assert seen.findings() == []


def test_the_card_of_a_host_comes_where_the_pointer_rests_and_goes_with_escape(browser: Any, racks: str):
    with visit(browser, racks) as seen:
        page = seen.open(ASKED)
        page.locator(".cells button.s").first.hover()
        card = page.locator(".host-card")
        card.locator("h2").wait_for()
        assert "not the only obstacle" in card.inner_text()
        assert seen.findings() == []
        page.keyboard.press("Escape")
        assert not card.is_visible()


def test_arrows_lead_from_cell_to_cell_which_are_one_stop_of_the_tab_key(browser: Any, racks: str):
    with visit(browser, racks) as seen:
        page = seen.open(ASKED)
        assert page.locator(".cells button[tabindex='-1']").count() == 999
        page.locator(".cells button").first.focus()
        place = "() => [...document.querySelectorAll('.cells button')].indexOf(document.activeElement)"
        page.keyboard.press("ArrowRight")
        assert page.evaluate(place) == 1
        page.keyboard.press("ArrowDown")
        assert page.evaluate(place) == 8
        with page.expect_navigation():
            page.keyboard.press("Enter")
        assert "host=" in page.url
        assert page.locator(".host-card h2").is_visible()


def test_a_phone_shows_all_cells_without_scrolling_sideways(browser: Any, racks: str):
    with visit(browser, racks, viewport={"width": PHONE[0], "height": PHONE[1]}) as seen:
        seen.open(f"{ASKED}&group=eu-west-1a")
        assert seen.overflow() <= 0


@pytest.fixture(scope="module")
def zones(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with served_racks(tmp_path_factory.mktemp("zones"), hosts=10_000, sparse=True) as served:
        yield served


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_ten_thousand_hosts_are_folded_by_zone_and_a_zone_opens(browser: Any, zones: str, scheme: str):
    with visit(browser, zones, color_scheme=scheme, viewport={"width": 1440, "height": 900}) as seen:
        page = seen.open(ASKED)
        assert page.locator(".fold").count() == 5
        assert page.locator(".cells button").count() == 0
        assert page.evaluate("() => document.querySelector('.maps').getBoundingClientRect().bottom") <= 900
        assert seen.overflow() <= 0
        assert seen.findings() == []
        with page.expect_navigation():
            page.locator(".fold a").first.click()
        assert "zone eu-west-1a" in page.locator("h1").inner_text()
        assert page.locator(".cells button").count() == 2000
        assert seen.overflow() <= 0


def test_lists_of_ten_thousand_hosts_open_and_fit(browser: Any, zones: str):
    with visit(browser, zones) as seen:
        for path in (
            "/",
            "/providers",
            "/providers?q=gpu-b399&group=zone:eu-west-1e",
            "/consumers",
            "/project?id=blue",
        ):
            page = seen.open(path)
            assert page.locator("main table").count() >= 1, path
            assert seen.overflow() <= 0, path


def test_long_names_lie_beside_each_other_in_the_graph_of_a_tree(browser: Any, racks: str):
    with visit(browser, racks) as seen:
        page = seen.open("/map?host=")
        page.locator(".cells button").first.hover()
        page.locator(".host-card h2 a").click()
        page.get_by_role("button", name="Graph").click()
        boxes = [text.bounding_box() for text in page.locator(".graph text.name").all()]
        assert len(boxes) == 5
        whole = page.locator(".graph svg").bounding_box()
        assert whole is not None
        for number, box in enumerate(boxes):
            assert box is not None
            assert box["x"] + box["width"] <= whole["x"] + whole["width"]
            for other in boxes[:number]:
                assert other is not None
                apart = box["x"] >= other["x"] + other["width"] or other["x"] >= box["x"] + box["width"]
                assert apart or abs(box["y"] - other["y"]) >= box["height"]
        assert seen.overflow() <= 0
