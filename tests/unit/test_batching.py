"""Of the threads that wait for the same kind of work, one does it for all."""

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from placement.store.connection.batching import Batching
from tests.gathering import until_waiting

TIMEOUT_S = 30
UNLUCKY = -13


class Work:
    """Processes numbers; the first batch waits until it may begin."""

    def __init__(self) -> None:
        self.batches: Batching[int] = Batching()
        self.done: list[list[int]] = []
        self.may_begin = threading.Event()
        self.held = 0
        self.never_begins = False

    @contextmanager
    def turn(self) -> Iterator[None]:
        assert self.may_begin.wait(TIMEOUT_S)
        if self.never_begins:
            self.never_begins = False
            raise TimeoutError
        self.held += 1
        assert self.held == 1, "two batches at a time"
        yield
        self.held -= 1

    def process(self, items: Sequence[int]) -> None:
        self.done.append(list(items))
        if UNLUCKY in items:
            raise ValueError(UNLUCKY)

    def join(self, item: int, then: Callable[[], object] = lambda: None) -> None:
        with self.batches.joined(item, self.turn(), self.process):
            then()


@contextmanager
def threads_with(work: Work, items: Sequence[int]) -> Iterator[list[Future[None]]]:
    """Start threads one after the other, and yield their futures."""
    with ThreadPoolExecutor(len(items)) as threads:
        coming = []
        for number, item in enumerate(items):
            coming.append(threads.submit(work.join, item))
            until_waiting(work.batches, number + 1)
        yield coming


def test_all_that_wait_when_the_turn_comes_are_one_batch() -> None:
    work = Work()
    with threads_with(work, range(5)) as coming:
        work.may_begin.set()
        for one in coming:
            one.result(TIMEOUT_S)
    assert work.done == [[0, 1, 2, 3, 4]]


def test_a_batch_begins_when_all_of_the_one_before_have_left() -> None:
    work = Work()
    work.may_begin.set()
    with ThreadPoolExecutor(1) as threads:

        def others() -> None:
            coming = threads.submit(work.join, 2)
            until_waiting(work.batches, 1)
            assert work.done == [[1]]
            assert not coming.done()

        work.join(1, others)
    assert work.done == [[1], [2]]


def test_the_leader_gets_the_error_of_a_batch_and_the_next_one_begins() -> None:
    work = Work()
    with threads_with(work, [1, UNLUCKY, 2]) as coming:
        work.may_begin.set()
        with pytest.raises(ValueError, match="-13"):
            coming[0].result(TIMEOUT_S)
        for one in coming[1:]:
            one.result(TIMEOUT_S)
    work.join(3)
    assert work.done == [[1, UNLUCKY, 2], [3]]


def test_a_leader_whose_turn_never_comes_gets_the_error_and_the_others_go_on_without_it() -> None:
    work = Work()
    work.never_begins = True
    with threads_with(work, [1, 2, 3]) as coming:
        work.may_begin.set()
        with pytest.raises(TimeoutError):
            coming[0].result(TIMEOUT_S)
        for one in coming[1:]:
            one.result(TIMEOUT_S)
    assert work.done == [[2, 3]]
