"""Pages follow the cloud, and stand still while somebody reads."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from placement.cli.demo import uuid_of
from tests.browser.cloud import served_cloud
from tests.browser.visits import visit
from tests.clouds import allocate
from tests.http_calls import HttpCalls

WAIT_MS = 20_000


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server of its own, because these tests change its cloud."""
    with served_cloud(tmp_path_factory.mktemp("live")) as served:
        yield served


def _claimed(url: str) -> str:
    return allocate(HttpCalls(url), uuid_of("storage1"), {"DISK_GB": 1})


def test_a_page_shows_what_has_been_claimed_since(browser: Any, url: str, pictures: Path):
    with visit(browser, url) as seen:
        page = seen.open("/consumers")
        consumer = _claimed(url)
        page.get_by_role("link", name=consumer).wait_for(timeout=WAIT_MS)
        graph = seen.open(f"/providers/{uuid_of('storage1')}")
        graph.get_by_role("button", name="Graph").click()
        graph.evaluate("() => document.activeElement.blur()")
        graph.mouse.move(0, 0)  # away from the button
        other = _claimed(url)
        graph.get_by_role("link", name=other).first.wait_for(timeout=WAIT_MS)
        assert graph.locator("[data-graph] svg").is_visible()


READINGS = {
    "selects": "() => getSelection().selectAllChildren(document.querySelector('h1'))",
    "focuses": "() => document.querySelector('main a').focus()",
    "unfolds": "() => { document.querySelector('main details').open ^= true; }",
    "types": "() => document.querySelector('main').dispatchEvent(new Event('input', { bubbles: true }))",
}


@pytest.mark.parametrize("reading", READINGS)
def test_a_page_stands_still_while_somebody_reads(browser: Any, url: str, reading: str):
    with visit(browser, url) as seen:
        page = seen.open(f"/providers/{uuid_of('storage1')}")
        page.evaluate(READINGS[reading])
        consumer = _claimed(url)
        button = page.get_by_role("button", name="Show what changed")
        button.wait_for(timeout=WAIT_MS)
        assert page.get_by_role("link", name=consumer).count() == 0
        button.click()
        page.get_by_role("link", name=consumer).first.wait_for(timeout=WAIT_MS)


def test_a_paused_page_and_those_after_it_stay_as_they_are(browser: Any, url: str):
    with visit(browser, url) as seen:
        page = seen.open("/consumers")
        page.get_by_role("button", name="Live").click()
        page = seen.open("/")
        assert page.get_by_role("button", name="Live").get_attribute("aria-pressed") == "false"
