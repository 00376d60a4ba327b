"""What was derived is found again with what has changed since, and the least recently used is dropped."""

from typing import NamedTuple

from placement.cloud.derived import BYTES_OF_NAME, CloudChanges, Derived, Kept


class State(NamedTuple):
    """A state in which trees with the numbers of later states have changed."""

    number: int
    is_newest: bool = True
    history: str = "a"

    def changed_since(self, number: int) -> CloudChanges | None:
        low, high = sorted((number, self.number))
        return CloudChanges(frozenset(range(low + 1, high + 1))) if high - low < 10 else None


def test_a_value_is_found_with_the_trees_that_have_changed_since() -> None:
    derived = Derived()
    derived.keep(State(3), "order", "abc", size=3)
    assert derived.find(State(3), "order") == Kept("abc", frozenset())
    assert derived.find(State(5), "order") == Kept("abc", frozenset({4, 5}))
    assert derived.find(State(2, is_newest=False), "order") == Kept("abc", frozenset({3}))
    assert derived.find(State(3), "another") is None
    assert derived.find(State(3, history="b"), "order") is None
    assert derived.find(State(13), "order") is None


def test_an_older_state_replaces_nothing() -> None:
    derived = Derived()
    derived.keep(State(3), "order", "abc", size=3)
    derived.keep(State(2), "order", "old", size=3)
    derived.keep(State(4, is_newest=False), "order", "older", size=3)
    assert derived.find(State(3), "order") == Kept("abc", frozenset())
    derived.keep(State(4), "order", "new", size=3)
    assert derived.find(State(4), "order") == Kept("new", frozenset())


def test_what_was_not_asked_for_longest_is_dropped() -> None:
    derived = Derived(most_bytes=3 * (BYTES_OF_NAME + 100))
    for name in "abc":
        derived.keep(State(1), name, name, size=100)
    derived.find(State(1), "a")
    derived.keep(State(1), "d", "d", size=100)
    assert [name for name in "abcd" if derived.find(State(1), name)] == ["a", "c", "d"]
    derived.keep(State(1), "e", "too large", size=derived.size)
    assert derived.find(State(1), "e") is None
    assert derived.size <= 3 * (BYTES_OF_NAME + 100)
