"""The cloud as operators name it: whole domain names, deep and wide trees, names that hide or reverse text."""

from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

import pytest

from tests.bench.rows import provider_uuid
from tests.browser.cloud import FLAVORS, served_long_names
from tests.browser.visits import visit
from tests.ui.long_names import DOMAIN, HOSTILE, deep_host, gpu_host, wide_host

FLAVOR = FLAVORS["g1.large"]
DEEPEST = f"deep-000.{DOMAIN}{''.join(f'_level{level}' for level in range(1, 9))}"

PATHS = {
    "overview": "/",
    "map": f"/map?{urlencode({'query': FLAVOR, 'project': 'blue', 'host': provider_uuid(gpu_host(0).name)[:8]})}",
    "providers": "/providers?list=providers",
    "hosts with GPUs": "/providers?q=gpu&group=zone:eu-west-1a&list=trees",
    "a host": f"/providers/{provider_uuid(gpu_host(0).name)}",
    "a wide tree": f"/providers/{provider_uuid(wide_host().name)}",
    "a deep tree": f"/providers/{provider_uuid(deep_host().name)}",
    "deep in it": f"/providers/{provider_uuid(DEEPEST)}",
    "maintenance": f"/providers/{provider_uuid(gpu_host(1).name)}/maintenance",
    "consumers": "/consumers",
    "candidates": f"/request?{urlencode({'query': FLAVOR})}",
    "no candidates": f"/request?{urlencode({'query': 'resources=VCPU:97,MEMORY_MB:1031073'})}",
    "project": f"/project?{urlencode({'id': 'research/vision', 'claim': 'VCPU:64'})}",
    "shares": "/fair-share",
    **{f"hostile {number}": f"/providers/{provider_uuid(name)}" for number, name in enumerate(HOSTILE)},
}
SIZES = {"1440": (1440, 900), "1120": (1120, 800), "390": (390, 844)}


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server with a hundred hosts and the trees that are hard to draw."""
    with served_long_names(tmp_path_factory.mktemp("long-names")) as served:
        yield served


@pytest.mark.parametrize("name", PATHS)
def test_no_name_makes_a_page_wider_than_its_window(browser: Any, cloud: str, name: str):
    with visit(browser, cloud) as seen:
        page = seen.open(PATHS[name])
        for size, (width, height) in SIZES.items():
            page.set_viewport_size({"width": width, "height": height})
            assert seen.overflow() <= 0, size


@pytest.mark.parametrize("name", [name for name in PATHS if not name.startswith("hostile")])
@pytest.mark.parametrize(("scheme", "size"), [("light", "1440"), ("dark", "390")])
def test_nothing_serious_is_found_about_a_page(browser: Any, cloud: str, name: str, scheme: str, size: str):
    width, height = SIZES[size]
    with visit(browser, cloud, color_scheme=scheme, viewport={"width": width, "height": height}) as seen:
        seen.open(PATHS[name])
        assert seen.findings() == []


def test_a_name_neither_runs_nor_hides_nor_turns_what_is_around_it(browser: Any, cloud: str):
    with visit(browser, cloud) as seen:
        page = seen.open("/providers?q=numa&list=trees")
        page.on("dialog", lambda _dialog: pytest.fail("a name was run as a script"))
        shown = (
            page.locator("main").inner_text()
            + seen.open("/providers?list=trees&kind=VCPU,MEMORY_MB,PGPU").locator("main").inner_text()
        )
        for text in ("<b onclick=alert(1)>", "[U+202E]gpj.exe", "[U+200B][U+200B]", "a[U+0007]b", HOSTILE[-1]):
            assert text in shown
        assert "\u202e" not in shown
        for link in page.locator("main th a").all():
            assert link.inner_text().strip()


def test_every_column_of_the_candidates_is_seen_at_a_desk_of_1120_pixels(browser: Any, cloud: str):
    with visit(browser, cloud, viewport={"width": 1120, "height": 800}) as seen:
        page = seen.open(PATHS["candidates"])
        box = page.locator("[aria-label=Candidates]")
        assert page.locator("table.candidates thead th").count() >= 6
        assert box.evaluate("box => box.scrollWidth - box.clientWidth") <= 0
