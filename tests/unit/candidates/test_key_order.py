"""An order is what sorting gives, however it is read and changed, and older orders stay as they were."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placement.candidates.frontier import FAILS, ROOT, Key
from placement.candidates.key_order import BLOCK, KeyColumns, KeyOrder, KeyQueue

Known = dict[int, Key]


def some_keys(choice: Random, roots: list[int]) -> list[Key]:
    """Return a key for each root; many have equal scores."""
    return [(choice.random() < 0.1, float(-choice.randrange(5)), root) for root in roots]


def changed(choice: Random, order: KeyOrder, known: Known, most: int) -> tuple[KeyOrder, Known]:
    """Change at most this many keys: some roots go, some are new, most get another key or the same one again."""
    roots = choice.sample([*known], min(len(known), choice.randint(0, most)))
    gone = {root for root in roots if choice.random() < choice.choice([0.0, 0.1])}
    coming = {choice.randrange(9 * BLOCK) for _ in range(choice.choice([0, most // 4]))} - known.keys()
    new = some_keys(choice, [*({*roots} - gone), *coming])
    left = {root: key for root, key in known.items() if root not in gone}
    keys = order.keys.with_changes(gone, KeyColumns.from_keys(new))
    return KeyOrder(keys), {**left, **{key[ROOT]: key for key in new}}


@given(st.integers(0, 3 * BLOCK), st.integers(0, 2 * BLOCK), st.integers(0, 2**32))
def test_an_order_is_what_sorting_gives_however_often_keys_change(most: int, size: int, seed: int) -> None:
    choice = Random(seed)
    known = {key[ROOT]: key for key in some_keys(choice, [*range(size)])}
    order = KeyOrder.from_keys(known.values())
    for _ in range(6):
        order, known = changed(choice, order, known, most)
        expected = sorted(known.values())
        start, end = sorted(choice.choices(range(len(expected) + 2), k=2))
        assert order.between(start, end) == expected[start:end]
        assert order.roots(start, end) == [key[ROOT] for key in expected[start:end]]
        assert order.first_failing == len([key for key in expected if not key[FAILS]])
        assert len(order) == len(expected)
    assert [*order] == sorted(known.values())


def test_who_reads_an_older_order_sees_nothing_of_newer_ones() -> None:
    choice = Random(5)
    order = KeyOrder.from_keys(some_keys(choice, [*range(3 * BLOCK)]))
    states = [(order, {key[ROOT]: key for key in order})]
    for _ in range(12):
        states.append(changed(choice, *states[-1], 2 * BLOCK))
    for version, known in choice.sample(states, len(states)):
        assert [*version] == sorted(known.values())


@pytest.mark.parametrize("size", [BLOCK, 5 * BLOCK])
def test_the_best_are_taken_first(size: int) -> None:
    keys = sorted(some_keys(Random(3), [*range(size)]))
    queue = KeyQueue(KeyOrder.from_keys(keys))
    assert queue.taken(10) == keys[:10]
    assert queue.first == keys[10]
    failing = [key for key in keys if key[FAILS]]
    assert queue.without_failing() == {key[ROOT] for key in failing}
    assert len(queue) == len(keys) - 10 - len(failing)
    assert queue.taken(9 * BLOCK) == keys[10 : len(keys) - len(failing)]
    assert not len(queue)


@pytest.mark.parametrize("size", [BLOCK, 5 * BLOCK])
def test_only_the_keys_of_some_roots_are_left(size: int) -> None:
    keys = sorted(some_keys(Random(4), [*range(size)]))
    queue = KeyQueue(KeyOrder.from_keys(keys))
    taken = queue.taken(10)
    roots = {key[ROOT] for key in keys if key[ROOT] % 3 == 0}
    assert queue.only(roots) == {key[ROOT] for key in keys[10:]} - roots
    left = [key for key in keys[10:] if key[ROOT] in roots]
    assert len(queue) == len(left)
    assert taken + queue.taken(9 * BLOCK) == keys[:10] + left
