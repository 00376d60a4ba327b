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
        self.is_held = threading.Lock()
        self.never_begins = False

    @contextmanager
    def turn(self) -> Iterator[None]:
        assert self.may_begin.wait(TIMEOUT_S)
        if self.never_begins:
            self.never_begins = False
            raise TimeoutError
        assert self.is_held.acquire(blocking=False), "two batches at a time"
        yield
        self.is_held.release()

    def process(self, items: Sequence[int]) -> None:
        self.done.append([*items])
        if UNLUCKY in items:
            raise ValueError(UNLUCKY)

    def join(self, item: int, then: Callable[[], object] = lambda: None) -> None:
        with self.batches.joined(item, self.turn(), self.process):
            then()


@contextmanager
def threads_with(work: Work, items: Sequence[int]) -> Iterator[list[Future[None]]]:
    """Start threads one after the other, let the first batch begin, and yield their futures."""
    with ThreadPoolExecutor(len(items)) as threads:
        waiting = []
        for number, item in enumerate(items):
            waiting.append(threads.submit(work.join, item))
            until_waiting(work.batches, number + 1)
        work.may_begin.set()
        yield waiting


def test_all_that_wait_when_the_turn_comes_are_one_batch() -> None:
    work = Work()
    with threads_with(work, range(5)) as waiting:
        for done in waiting:
            done.result(TIMEOUT_S)
    assert work.done == [[0, 1, 2, 3, 4]]


def test_a_batch_begins_when_all_of_the_one_before_have_left() -> None:
    work = Work()
    work.may_begin.set()
    with ThreadPoolExecutor(1) as threads:

        def others() -> None:
            waiting = threads.submit(work.join, 2)
            until_waiting(work.batches, 1)
            assert work.done == [[1]]
            assert not waiting.done()

        work.join(1, others)
    assert work.done == [[1], [2]]


@pytest.mark.parametrize(
    ("items", "error", "batches"),
    [([1, UNLUCKY, 2], ValueError, [[1, UNLUCKY, 2]]), ([1, 2, 3], TimeoutError, [[2, 3]])],
    ids=["a batch that fails", "a turn that never comes"],
)
def test_the_leader_gets_the_error_and_others_go_on(items: list[int], error: type[Exception], batches) -> None:
    work = Work()
    work.never_begins = error is TimeoutError
    with threads_with(work, items) as waiting:
        with pytest.raises(error):
            waiting[0].result(TIMEOUT_S)
        for done in waiting[1:]:
            done.result(TIMEOUT_S)
    assert work.done == batches
    work.join(7)
    assert work.done[-1] == [7]
