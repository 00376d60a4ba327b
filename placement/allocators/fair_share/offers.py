"""What can be given back for a claim, and which of it to choose."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from heapq import nsmallest
from math import lcm

from placement.allocators.entries import Number, exact
from placement.allocators.fair_share.claim_rights import ClaimRights, Parting, queue_of
from placement.allocators.fair_share.fewest import MAX_EXACT, fewest
from placement.allocators.fair_share.taking import Giver, Things, least_valuable_first
from placement.allocators.fair_share.tree import Amounts, way
from placement.allocators.natural_order import natural_key


@dataclass(frozen=True, slots=True)
class Held:
    """Something that can only be given back whole.

    Args:
        name: its name.
        leaf: who uses it.
        amounts: what it frees.
        value: its worth; the least valuable goes first.
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
        given_back: what has to go, the least valuable first; empty if the claimant fits already.
        lacking: class -> how much the claimant lacks at present.
        complete: False if the search was cut short: a better answer, or any answer at all, may have been missed.
        partings: the levels that decided, for those who give; if infeasible, for everybody who was asked.
    """

    feasible: bool
    given_back: tuple[Held, ...] = ()
    lacking: Amounts = field(default_factory=dict)
    complete: bool = True
    partings: tuple[Parting, ...] = ()


def _bound(_one: Held) -> bool:
    return False


class Offers:
    """Everything that may be given back for a claim.

    Args:
        rights: what is needed, and everybody's entitlement.
        held: the candidates; their owners must all be allowed to give.
        is_free: whether something may go regardless of its owner's entitlement.
    """

    def __init__(self, rights: ClaimRights, held: Iterable[Held], *, is_free: Callable[[Held], bool] = _bound) -> None:
        self._rights = rights
        self._held = [one for one in held if any([one.amounts.get(name) for name in rights.classes])]
        amounts = [[one.amounts.get(name, 0) for one in self._held] for name in rights.classes]
        self._takes = list(zip(*amounts, strict=True))
        self._things = self._columns([is_free(one) for one in self._held])

    def _columns(self, free: Sequence[bool]) -> Things:
        rights, leaves = self._rights, {one.leaf for one in self._held}
        asked = {leaf: (queue_of(leaf), rights.keepers(leaf)) for leaf in leaves}
        owners = sorted({*asked.values()}, key=partial(_preference, rights))
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
            needed=tuple(rights.needs.values()),
            purses=[tuple(rights.entitlements.surplus(path).values()) for path in purses],
            of_giver=[
                Giver(tuple([purses[path] for path in keepers]), is_bound)
                for _queue, keepers in owners
                for is_bound in (True, False)
            ],
        )

    def _gives(self, owners: Sequence[int], queues: Sequence[str]) -> Sequence[tuple[int, ...]]:
        """Return how much each thing contributes to every need: what it takes, where the need encloses its queue."""
        rights = self._rights
        if all([path == rights.root for path, _name in rights.needs]):
            return self._takes
        columns = {name: number for number, name in enumerate(rights.classes)}
        inside = [{rights.root, *way(queue)} for queue in queues]
        masks = [[(columns[name], path in around) for path, name in rights.needs] for around in inside]
        return [
            tuple([takes[column] * is_inside for column, is_inside in masks[owner // 2]])
            for takes, owner in zip(self._takes, owners, strict=True)
        ]

    def least_valuable(self) -> list[Held] | None:
        """Return what giving back in ascending order of value would take; None if even everything is not enough."""
        numbers = least_valuable_first(self._things)
        return None if numbers is None else [self._held[number] for number in numbers]

    @property
    def are_few(self) -> bool:
        """Whether there are few enough for an exhaustive search."""
        return len(self._held) <= MAX_EXACT

    def chosen(self, *, steps: int) -> Giving:
        """Choose the fewest things, among those the least valuable, within this many partial choices."""
        found = fewest(self._things, steps=steps)
        given_back = tuple(sorted(self._first_by_name(found.numbers or ()), key=dearness))
        return Giving(
            feasible=found.numbers is not None,
            given_back=given_back,
            lacking=self._rights.lacking,
            complete=found.complete,
            partings=self._rights.partings([one.leaf for one in given_back or self._held]),
        )

    def _first_by_name(self, numbers: Sequence[int]) -> Iterator[Held]:
        """Swap the chosen things for those interchangeable with them that come first by name."""
        sorts = list(zip(self._things.givers, self._takes, self._things.values, strict=True))
        counts = Counter([sorts[number] for number in numbers])
        alike: dict[object, list[Held]] = {sort: [] for sort in counts}
        for sort, one in zip(sorts, self._held, strict=True):
            if sort in alike:
                alike[sort].append(one)
        for sort, count in counts.items():
            yield from nsmallest(count, alike[sort], key=dearness)


def whole_values(held: Iterable[Held]) -> dict[Number, int]:
    """Map each value to an integer, all scaled by one common factor."""
    values = {value: value if isinstance(value, int) else exact(value) for value in {one.value for one in held}}
    unit = lcm(*[value.denominator for value in values.values()])
    return {value: int(as_written * unit) for value, as_written in values.items()}


def _preference(rights: ClaimRights, owner: tuple[str, tuple[str, ...]]) -> tuple[object, ...]:
    """Return the sort key of an owner: the larger the surplus over its entitlement, the earlier."""
    queue, keepers = owner
    surplus = sum(rights.entitlements.surplus(keepers[0]).values()) if keepers else 0
    return -surplus, natural_key(queue), keepers


def dearness(one: Held) -> tuple[object, ...]:
    """Return the sort key of a thing: value, then name."""
    return exact(one.value), natural_key(one.leaf), natural_key(one.name)
