"""Ctrl-C is noted between two rounds of a loop, and raised if it is pressed again."""

import os
import signal
import time
from collections.abc import Iterator

import pytest

from placement.cli.output import noted_interrupts


@pytest.fixture(autouse=True)
def _heard() -> Iterator[None]:
    """Ctrl-C is heard, even if the tests run in the background of a shell that ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def press() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def test_the_first_is_noted_and_the_second_raised() -> None:
    with noted_interrupts() as interrupts:
        assert not interrupts.has_come
        press()
        assert interrupts.has_come
        with pytest.raises(KeyboardInterrupt):
            press()


def test_afterwards_the_first_is_raised_as_before() -> None:
    with noted_interrupts():
        pass
    with pytest.raises(KeyboardInterrupt):
        press()


def test_nobody_waits_on_after_it() -> None:
    before = signal.signal(signal.SIGALRM, lambda _number, _frame: press())
    with noted_interrupts() as interrupts:
        begun = time.monotonic()
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        interrupts.wait(60)
        interrupts.wait(60)
        assert time.monotonic() - begun < 30
    signal.signal(signal.SIGALRM, before)
