"""At start, libraries without a security fix are named, and no others."""

from importlib.metadata import PackageNotFoundError

import pytest

from placement.advisories import ADVISORIES, Advisory, warn_of_old_libraries

MENDED = Advisory("parser", (4, 1, 2), "a list takes long")


@pytest.mark.parametrize(
    ("installed", "warned"), [("4.1.1", True), ("4.1", True), ("4.0.0rc1", True), ("4.1.2", False)]
)
def test_a_release_before_the_fix_is_named(installed: str, warned: bool, caplog: pytest.LogCaptureFixture) -> None:
    warn_of_old_libraries([MENDED], installed=lambda _package: installed)
    told = [f"parser {installed} is installed: a list takes long. Release 4.1.2 fixes it."] if warned else []
    assert caplog.messages == told


def test_what_is_not_installed_is_not_named(caplog: pytest.LogCaptureFixture) -> None:
    """Under mod_wsgi, gunicorn may not be installed."""

    def missing(package: str) -> str:
        raise PackageNotFoundError(package)

    warn_of_old_libraries(installed=missing)
    assert caplog.messages == []


def test_every_advisory_names_a_package_that_this_server_uses() -> None:
    assert {advisory.package for advisory in ADVISORIES} == {"gunicorn"}
