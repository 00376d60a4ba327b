"""A browser, a server with the demo cloud, and visits to its console.

Without Chromium the tests are skipped, unless they were selected by name (``tox -e browser``).
"""

import os
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from tests.browser.cloud import is_required, served_cloud

playwright = pytest.importorskip("playwright.sync_api", reason="needs Playwright: pip install -e '.[browser]'")

from tests.browser.visits import Visit, chromium_path, launched, visit  # noqa: E402 - needs Playwright

Opening = Callable[..., AbstractContextManager[Visit]]


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    if chromium_path() is None:
        message = "needs Chromium (Debian's package chromium) on the PATH"
        (pytest.fail if is_required() else pytest.skip)(message)
    with playwright.sync_playwright() as driver:
        running = launched(driver)
        yield running
        running.close()


@pytest.fixture(scope="session")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with served_cloud(tmp_path_factory.mktemp("server")) as served:
        yield served


@pytest.fixture(scope="session")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory for pictures of the pages: PLACEMENT_PICTURES, or pytest's own directory."""
    named = os.environ.get("PLACEMENT_PICTURES")
    directory = Path(named) if named else tmp_path_factory.mktemp("pictures")
    directory.mkdir(parents=True, exist_ok=True)
    return directory


@pytest.fixture
def opening(browser: Any, url: str, pictures: Path, request: pytest.FixtureRequest) -> Opening:
    """Returns a visit with the options of a Playwright context, which leaves a picture at its end."""
    name = re.sub(r"[^a-z0-9]+", "-", request.node.name.removeprefix("test_").lower()).strip("-")

    def opened(**options: Any) -> AbstractContextManager[Visit]:
        return visit(browser, url, picture=pictures / f"{name}.png", **options)

    return opened
