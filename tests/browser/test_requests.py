"""Trying requests as a person does: paste, fill in, submit, read, and turn pages."""

import re

from tests.browser.conftest import Opening
from tests.browser.pages import EMPTY, FOUND, trying
from tests.browser.visits import PHONE


def test_a_pasted_request_shows_candidates_on_their_trees(opening: Opening):
    with opening() as seen:
        page = seen.open("/request")
        page.get_by_label("Query string").fill(f"http://controller/placement/allocation_candidates?{FOUND}")
        page.get_by_role("button", name="Try", exact=True).click()
        page.wait_for_load_state()
        assert page.locator(".answer h2").first.inner_text() == "2 candidates"
        first = page.locator(".candidate").first
        assert "1 PGPU of 1 free" in first.locator(".gives", has_text="gpu1").last.inner_text()
        assert first.locator(".score dt", has_text="compactness").is_visible()
        page.get_by_text("The same request to the API").click()
        assert "curl -s" in page.locator("pre").inner_text()


def test_a_filled_in_form_asks_the_same_as_its_query_string(opening: Opening):
    with opening() as seen:
        page = seen.open("/request")
        group = page.get_by_role("group", name="A group, from one provider").first
        group.get_by_label("Suffix").fill("_GPU")
        group.get_by_label("Resources").fill("PGPU = 1")
        unsuffixed = page.get_by_role("group", name="Anywhere in a tree")
        unsuffixed.get_by_label("Resources").fill("DISK_GB:10")
        page.get_by_role("button", name="Try the form").click()
        page.wait_for_load_state()
        assert page.get_by_label("Query string").input_value() == "resources=DISK_GB:10&resources_GPU=PGPU:1"
        assert re.fullmatch(r"\d+ candidates", page.locator(".answer h2").first.inner_text())
        page.get_by_text("Edit it in a form").click()
        assert page.get_by_role("group", name="A group").first.get_by_label("Resources").input_value() == "PGPU:1"


def test_an_empty_answer_is_a_waterfall_with_its_cause_and_what_would_help(opening: Opening):
    with opening() as seen:
        page = seen.open("/request")
        page.get_by_label("Query string").fill(EMPTY)
        page.get_by_role("button", name="Try", exact=True).click()
        page.wait_for_load_state()
        assert page.locator(".answer h2").first.inner_text() == "No candidates"
        assert "trait STORAGE_DISK_SSD (group _NUMA)" in page.locator(".note").inner_text()
        widths = [float(rect.get_attribute("width") or 0) for rect in page.locator(".waterfall .part").all()]
        assert widths[0] == 100
        assert min(widths) < 100
        assert page.locator(".waterfall .nothing").count() >= 1
        page.get_by_role("link", name="compute1", exact=True).first.click()
        page.wait_for_load_state()
        assert "compute1" in page.locator("h1").inner_text()


def test_a_refusal_is_read_out_beside_the_form_and_can_be_put_right(opening: Opening):
    with opening() as seen:
        page = seen.open(trying("resources=VCPU"), status=400)
        assert "Badly formed resources parameter" in page.get_by_role("alert").inner_text()
        assert seen.findings() == []
        page.get_by_label("Query string").fill("resources=VCPU:1")
        page.get_by_role("button", name="Try", exact=True).click()
        page.wait_for_load_state()
        assert page.get_by_role("alert").count() == 0
        assert page.locator(".candidate").count() > 0


def test_requests_can_be_tried_on_a_phone_without_javascript(opening: Opening):
    with opening(java_script_enabled=False, viewport={"width": PHONE[0], "height": PHONE[1]}) as seen:
        page = seen.open("/request")
        page.get_by_label("Query string").fill("resources=VCPU:1&limit=1")
        page.get_by_role("button", name="Try", exact=True).click()
        page.wait_for_load_state()
        assert page.locator(".answer h2").first.inner_text() == "1 candidate"


def test_a_candidate_leads_to_its_provider(opening: Opening):
    with opening() as seen:
        page = seen.open(trying(FOUND))
        link = page.locator(".candidate").first.get_by_role("link", name="compute1 numa1")
        link.click(position={"x": 20, "y": 8})  # Playwright would click the middle of the hidden words.
        page.wait_for_load_state()
        assert "compute1-numa1" in page.locator("h1").inner_text()
