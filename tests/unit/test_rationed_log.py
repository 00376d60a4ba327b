"""Lines that are told once: a flood, whose repetitions are counted, and libraries without a security fix."""

import logging
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError

import pytest

from placement.advisories import ADVISORIES, Advisory, warn_of_old_libraries
from placement.logs import MAX_LINES, WINDOW_S, RationedLog


class Clock:
    """A clock that tests set, and the calls scheduled on it."""

    def __init__(self) -> None:
        self.now = 0.0
        self.calls: list[tuple[float, Callable[[], None]]] = []

    def __call__(self) -> float:
        return self.now

    def later(self, seconds: float, call: Callable[[], None]) -> None:
        self.calls.append((self.now + seconds, call))

    def go_on(self, seconds: float) -> None:
        self.now += seconds
        for call in [call for due, call in self.calls if due <= self.now]:
            call()
        self.calls = [entry for entry in self.calls if entry[0] > self.now]


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def log(clock: Clock) -> RationedLog:
    return RationedLog(logging.getLogger("rationed"), clock=clock, later=clock.later)


def write(log: RationedLog, cause: str, times: int) -> None:
    for number in range(times):
        log.write(logging.WARNING, cause, "%s: line %d", cause, number)


def test_a_flood_is_some_lines_and_a_count(log: RationedLog, clock: Clock, caplog: pytest.LogCaptureFixture):
    write(log, "disk full", 1593)
    assert caplog.messages == [f"disk full: line {number}" for number in range(MAX_LINES)]
    clock.go_on(WINDOW_S)
    assert caplog.messages[MAX_LINES:] == [f"{1593 - MAX_LINES} more like this within a second: disk full"]
    write(log, "disk full", 1)
    assert caplog.messages[-1] == "disk full: line 0"


def test_causes_have_a_share_each(log: RationedLog, caplog: pytest.LogCaptureFixture):
    for cause in ("disk full", "deadlock"):
        write(log, cause, MAX_LINES)
    assert len(caplog.messages) == 2 * MAX_LINES


def test_lines_now_and_then_are_all_written(log: RationedLog, clock: Clock, caplog: pytest.LogCaptureFixture):
    for _ in range(20):
        write(log, "deadlock", 1)
        clock.go_on(WINDOW_S)
    assert caplog.messages == ["deadlock: line 0"] * 20


def test_the_count_comes_where_no_thread_can_run(log: RationedLog, clock: Clock, caplog: pytest.LogCaptureFixture):
    """As in uWSGI without threads: the next line with the same cause triggers it."""
    write(log, "deadlock", MAX_LINES + 2)
    clock.calls.clear()
    clock.go_on(WINDOW_S)
    write(log, "deadlock", 1)
    assert caplog.messages[MAX_LINES:] == ["2 more like this within a second: deadlock", "deadlock: line 0"]


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
