"""Of threads that want the same thing at once, one does it for all."""

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from placement.store.connection.company import LARGEST_PARTY, Company
from tests.gathering import until_waiting

TIMEOUT_S = 30
UNLUCKY = -13


class Kitchen:
    """Serves numbers; the first party waits until the others have come."""

    def __init__(self) -> None:
        self.company: Company[int] = Company()
        self.parties: list[list[int]] = []
        self.opens = threading.Event()
        self.held = 0
        self.is_closed = False

    @contextmanager
    def turn(self) -> Iterator[None]:
        assert self.opens.wait(TIMEOUT_S)
        if self.is_closed:
            self.is_closed = False
            raise TimeoutError
        self.held += 1
        assert self.held == 1, "two parties at a time"
        yield
        self.held -= 1

    def serve(self, wishes: Sequence[int]) -> None:
        self.parties.append(list(wishes))
        if UNLUCKY in wishes:
            raise ValueError(UNLUCKY)

    def join(self, wish: int, meal: Callable[[], object] = lambda: None) -> None:
        with self.company.joined(wish, self.turn(), self.serve):
            meal()


@contextmanager
def guests(kitchen: Kitchen, wishes: Sequence[int]) -> Iterator[list[Future[None]]]:
    """Let threads come one after the other, and give what becomes of them."""
    with ThreadPoolExecutor(len(wishes)) as threads:
        coming = []
        for number, wish in enumerate(wishes):
            coming.append(threads.submit(kitchen.join, wish))
            until_waiting(kitchen.company, number + 1)
        yield coming


def test_all_who_wait_when_the_turn_comes_are_served_at_once() -> None:
    kitchen = Kitchen()
    with guests(kitchen, range(5)) as coming:
        kitchen.opens.set()
        for one in coming:
            one.result(TIMEOUT_S)
    assert kitchen.parties == [[0, 1, 2, 3, 4]]


def test_who_finds_no_room_in_a_party_is_in_the_next_one() -> None:
    kitchen = Kitchen()
    with guests(kitchen, range(LARGEST_PARTY + 2)) as coming:
        kitchen.opens.set()
        for one in coming:
            one.result(TIMEOUT_S)
    assert kitchen.parties == [list(range(LARGEST_PARTY)), [LARGEST_PARTY, LARGEST_PARTY + 1]]


def test_a_party_begins_when_all_of_the_one_before_have_left() -> None:
    kitchen = Kitchen()
    kitchen.opens.set()
    with ThreadPoolExecutor(1) as threads:

        def others() -> None:
            coming = threads.submit(kitchen.join, 2)
            until_waiting(kitchen.company, 1)
            assert kitchen.parties == [[1]]
            assert not coming.done()

        kitchen.join(1, others)
    assert kitchen.parties == [[1], [2]]


def test_where_a_party_cannot_be_served_one_is_told_and_the_next_one_comes() -> None:
    kitchen = Kitchen()
    with guests(kitchen, [1, UNLUCKY, 2]) as coming:
        kitchen.opens.set()
        with pytest.raises(ValueError, match="-13"):
            coming[0].result(TIMEOUT_S)
        for one in coming[1:]:
            one.result(TIMEOUT_S)
    kitchen.join(3)
    assert kitchen.parties == [[1, UNLUCKY, 2], [3]]


def test_where_the_turn_never_comes_the_one_is_told_and_the_others_are_served_without_it() -> None:
    kitchen = Kitchen()
    kitchen.is_closed = True
    with guests(kitchen, [1, 2, 3]) as coming:
        kitchen.opens.set()
        with pytest.raises(TimeoutError):
            coming[0].result(TIMEOUT_S)
        for one in coming[1:]:
            one.result(TIMEOUT_S)
    assert kitchen.parties == [[2, 3]]
