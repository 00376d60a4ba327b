"""Every order of steps that can make a difference, each tried once.

Dynamic partial-order reduction, as Flanagan and Godefroid describe it, with sleep sets: a run is repeated with another
choice only where a later step depended on the one that was taken. Knows neither a server nor a database.
"""

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from tests.interleavings.scheduler import Choose
from tests.interleavings.statements import Step, takes_the_whole_database

R = TypeVar("R")

Run = Callable[[Choose], R]
"""Starts anew, and takes the steps that are chosen."""


@dataclass(slots=True)
class _Node:
    """A moment of a run: what could go on, what did, and what is still to be tried from here."""

    able: Mapping[int, Step]
    asleep: set[int]
    wanted: set[int]
    chosen: int

    @property
    def step(self) -> Step:
        return self.able[self.chosen]


class _Walk:
    """The choices of one run: those of the path so far, then whoever was last, as long as that is new."""

    def __init__(self, path: list[_Node]) -> None:
        self._path = path
        self._depth = 0
        self._last = 0
        self.is_repetition = False

    def choose(self, able: Mapping[int, Step]) -> int:
        if self._depth < len(self._path) and self._path[self._depth].chosen not in able:
            del self._path[self._depth :]  # the server did something else this time
        if self._depth == len(self._path) and not self.is_repetition:
            self._extend(able)
        if self.is_repetition:
            return min(able)
        self._last = self._path[self._depth].chosen
        self._depth += 1
        return self._last

    def _extend(self, able: Mapping[int, Step]) -> None:
        asleep = self._still_asleep(able)
        free = sorted(able.keys() - asleep)
        if not free:
            self.is_repetition = True
            return
        chosen = self._last if self._last in free else free[0]
        self._path.append(_Node(able, asleep, {chosen}, chosen))

    def _still_asleep(self, able: Mapping[int, Step]) -> set[int]:
        """Return those whose next step has been tried before, with nothing in between that it depends on."""
        if not self._path:
            return set()
        before = self._path[-1]
        return {
            number
            for number in before.asleep
            if number in able and number != before.chosen and not before.able[number].depends_on(before.step)
        }


def every_order(run: Run[R]) -> Iterator[R]:
    """Yield the result of a run for each order of its steps that can make a difference."""
    path: list[_Node] = []
    while True:
        walk = _Walk(path)
        result = run(walk.choose)
        if not walk.is_repetition:
            yield result
        _want_other_orders(path)
        while path and not path[-1].wanted - path[-1].asleep - {path[-1].chosen}:
            path.pop()
        if not path:
            return
        path[-1].asleep.add(path[-1].chosen)
        path[-1].chosen = min(path[-1].wanted - path[-1].asleep)


def _want_other_orders(path: Sequence[_Node]) -> None:
    """Note for each step the last one before it that it could have come before, with another effect."""
    latest: dict[int, dict[int, int]] = {}
    seen_by: list[dict[int, int]] = []
    for index, node in enumerate(path):
        step, seen = node.step, latest.get(node.chosen, {})
        for earlier in reversed(range(index)):
            if _is_race(path[earlier].step, step) and earlier > seen.get(path[earlier].chosen, -1):
                other = path[earlier]
                other.wanted |= {node.chosen} if node.chosen in other.able else other.able.keys()
                break
        now = dict(seen)
        for earlier in range(index):
            if path[earlier].step.depends_on(step):
                for number, last in seen_by[earlier].items():
                    now[number] = max(last, now.get(number, -1))
        now[node.chosen] = index
        latest[node.chosen] = now
        seen_by.append(now)


def _is_race(first: Step, second: Step) -> bool:
    """Tell whether two steps depend on each other and could be next at the same moment."""
    if first.request == second.request or not first.depends_on(second):
        return False
    # SQLite's next writer cannot begin before the end of this one, only instead of it.
    return takes_the_whole_database(first.text) or not takes_the_whole_database(second.text)


def in_turn(numbers: Sequence[int]) -> Choose:
    """Choose one request after the other, each to its end: the order that a server without races would show."""
    return lambda able: next(number for number in numbers if number in able)


def at_random(choice: random.Random) -> Choose:
    """Choose anybody."""
    return lambda able: choice.choice(sorted(able))


def as_recorded(numbers: Sequence[int]) -> Choose:
    """Choose what an earlier run chose."""
    remaining = iter(numbers)

    def choose(able: Mapping[int, Step]) -> int:
        number = next(remaining, min(able))
        return number if number in able else min(able)

    return choose
