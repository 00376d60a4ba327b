"""What may be given back for a claim, and which of it is chosen."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from heapq import nsmallest
from math import lcm

from placement.allocators.entries import Number, exact
from placement.allocators.fair_share.court import Court, Parting, queue_of
from placement.allocators.fair_share.fewest import MOST_EXACT, fewest
from placement.allocators.fair_share.taking import Giver, Things, least_valuable_first
from placement.allocators.fair_share.tree import Amounts, way
from placement.allocators.natural_order import natural_key


@dataclass(frozen=True, slots=True)
class Held:
    """Something that can be given back, as a whole.

    Args:
        name: what it is called.
        leaf: who uses it.
        amounts: what becomes free.
        value: how much it is worth; the least valuable goes first.
    """

    name: str
    leaf: str
    amounts: Amounts
    value: Number = 0


@dataclass(frozen=True, slots=True)
class Giving:
    """What has to be given back.

    Args:
        feasible: whether the claimant fits afterwards.
        given_back: what is given back for that, nothing if it fits as it is; the least valuable first.
        lacking: how much of each class the claimant lacks as things are.
        complete: False if not all choices were looked at: then there may be a better answer, or one at all.
        partings: the levels that decided, for those who give; if nobody can, for all who were asked.
    """

    feasible: bool
    given_back: tuple[Held, ...] = ()
    lacking: Amounts = field(default_factory=dict)
    complete: bool = True
    partings: tuple[Parting, ...] = ()


def _bound(_one: Held) -> bool:
    return False


class Offers:
    """What may be given back for a claim.

    Args:
        court: what is needed, and who is entitled to what.
        held: what there is to choose from; whoever is asked must be allowed to give.
        is_free: whether something may go whatever its owner is entitled to.
    """

    def __init__(self, court: Court, held: Iterable[Held], *, is_free: Callable[[Held], bool] = _bound) -> None:
        self._court = court
        self._held = [one for one in held if any([one.amounts.get(name) for name in court.classes])]
        amounts = [[one.amounts.get(name, 0) for one in self._held] for name in court.classes]
        self._takes = list(zip(*amounts, strict=True))
        self._things = self._columns([is_free(one) for one in self._held])

    def _columns(self, free: Sequence[bool]) -> Things:
        court, leaves = self._court, {one.leaf for one in self._held}
        asked = {leaf: (queue_of(leaf), court.keepers(leaf)) for leaf in leaves}
        owners = sorted({*asked.values()}, key=partial(_preference, court))
        places = {owner: 2 * place for place, owner in enumerate(owners)}
        place_of = {leaf: places[owner] for leaf, owner in asked.items()}
        purses = {path: number for number, path in enumerate({path: None for _queue, keep in owners for path in keep})}
        values = whole_values(self._held)
        numbers = [place_of[one.leaf] + is_free for one, is_free in zip(self._held, free, strict=True)]
        return Things(
            gives=self._gives(numbers, [queue for queue, _keepers in owners]),
            takes=self._takes,
            values=[values[one.value] for one in self._held],
            givers=numbers,
            needed=tuple(court.needs.values()),
            purses=[tuple(court.entitlements.surplus(path).values()) for path in purses],
            of_giver=[
                Giver(tuple([purses[path] for path in keepers]), is_bound)
                for _queue, keepers in owners
                for is_bound in (True, False)
            ],
        )

    def _gives(self, owners: Sequence[int], queues: Sequence[str]) -> Sequence[tuple[int, ...]]:
        """Return what each gives towards what is needed: what it takes, where the need is around its queue."""
        court = self._court
        if all([path == court.root for path, _name in court.needs]):
            return self._takes
        columns = {name: number for number, name in enumerate(court.classes)}
        inside = [{court.root, *way(queue)} for queue in queues]
        masks = [[(columns[name], path in around) for path, name in court.needs] for around in inside]
        return [
            tuple([takes[column] * is_inside for column, is_inside in masks[owner // 2]])
            for takes, owner in zip(self._takes, owners, strict=True)
        ]

    def least_valuable(self) -> list[Held] | None:
        """Return what would be given back in the order of values; None if all that there is is not enough."""
        numbers = least_valuable_first(self._things)
        return None if numbers is None else [self._held[number] for number in numbers]

    @property
    def are_few(self) -> bool:
        """Whether all choices can be looked at."""
        return len(self._held) <= MOST_EXACT

    def chosen(self, *, steps: int) -> Giving:
        """Choose the fewest, of these the least valuable; so many partial choices are looked at."""
        found = fewest(self._things, steps=steps)
        given_back = tuple(sorted(self._first_by_name(found.numbers or ()), key=dearness))
        return Giving(
            feasible=found.numbers is not None,
            given_back=given_back,
            lacking=self._court.lacking,
            complete=found.complete,
            partings=self._court.partings([one.leaf for one in given_back or self._held]),
        )

    def _first_by_name(self, numbers: Sequence[int]) -> Iterator[Held]:
        """Yield as many of each kind and value, the first by name: others are as good."""
        sorts = list(zip(self._things.givers, self._takes, self._things.values, strict=True))
        counts = Counter([sorts[number] for number in numbers])
        alike: dict[object, list[Held]] = {sort: [] for sort in counts}
        for sort, one in zip(sorts, self._held, strict=True):
            if sort in alike:
                alike[sort].append(one)
        for sort, count in counts.items():
            yield from nsmallest(count, alike[sort], key=dearness)


def whole_values(held: Iterable[Held]) -> dict[Number, int]:
    """Return value -> the same as a whole number, in a unit in which all are."""
    values = {value: value if isinstance(value, int) else exact(value) for value in {one.value for one in held}}
    unit = lcm(*[value.denominator for value in values.values()])
    return {value: int(as_written * unit) for value, as_written in values.items()}


def _preference(court: Court, owner: tuple[str, tuple[str, ...]]) -> tuple[object, ...]:
    """Return what sorts owners: those first who have most beyond what they are entitled to."""
    queue, keepers = owner
    surplus = sum(court.entitlements.surplus(keepers[0]).values()) if keepers else 0
    return -surplus, natural_key(queue), keepers


def dearness(one: Held) -> tuple[object, ...]:
    """Return what sorts things by value, and then by name."""
    return exact(one.value), natural_key(one.leaf), natural_key(one.name)
