"""What should be given back so that a claimant fits: by entitlement (``reclaim``) or by priority (``preempt``).

A queue is a branch with leaves. Other queues give back by entitlement. Where the paths to the claimant and to a giver
part, there are two sibling nodes; they are compared in the lacking classes alone. The claimant's node must be entitled
to what it holds plus the task. The giver's node, and every node below it down to the giver's queue, keeps what it is
entitled to. So only borrowed resources go back, and only to those who lack what is theirs. Inside the claimant's own
queue, priorities decide.

Only amounts count here. Whether what becomes free lies on one provider is not known.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from heapq import nsmallest
from math import lcm
from typing import Protocol, TypeVar

from placement.allocators.entries import Number, exact
from placement.allocators.fair_share.entitlement import ClaimRights, Parting, queue_of
from placement.allocators.fair_share.fewest import MAX_EXACT, Giver, Things, fewest, least_valuable_first
from placement.allocators.fair_share.state import FairShares
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


MAX_STEPS = 20_000
"""The default for how many partial choices to look at."""


def reclaim(
    shares: FairShares,
    claimant: str,
    task: Amounts,
    *,
    held: Sequence[Held],
    waiting: Mapping[str, Amounts] | None = None,
    steps: int = MAX_STEPS,
) -> Giving:
    """Choose what other queues give back so that a task fits: the fewest things, among those the least valuable.

    Args:
        shares: the tree, its usage and what its leaves wait for.
        claimant: the leaf.
        task: what it wants.
        held: what may be given back; anything in the claimant's own queue is left alone.
        waiting: leaf -> everything it waits for; by default, its next task.
        steps: the most partial choices to look at.

    Raises:
        ValueError, KeyError: as ``FairShares``.

    >>> from placement.allocators.fair_share.tree import Branch, Leaf
    >>> root = Branch("root", (Branch("sci", (Leaf("ann"),)), Branch("eng", (Leaf("bob"),))))
    >>> shares = FairShares(root, {"gpu": 10}, usage={"root/eng/bob": {"gpu": 10}})
    >>> held = [Held(f"vm{number}", "root/eng/bob", {"gpu": 2}, value=number) for number in range(5)]
    >>> [one.name for one in reclaim(shares, "root/sci/ann", {"gpu": 4}, held=held).given_back]
    ['vm0', 'vm1']
    >>> reclaim(shares, "root/sci/ann", {"gpu": 6}, held=held).feasible
    False
    """
    rights = ClaimRights(shares, claimant, task, waiting=waiting)
    if not rights.needs:
        return Giving(feasible=True)
    giving = Offers(rights, reclaimable(rights, held)).chosen(steps=steps)
    if giving.feasible:
        return giving
    others = {one.leaf for one in held if queue_of(one.leaf) != queue_of(claimant)}
    return replace(giving, partings=rights.partings(others))


def reclaimable(rights: ClaimRights, held: Iterable[Held]) -> list[Held]:
    """Return the things that other queues may give."""
    return [one for one in held if is_reclaimable(rights, one)]


def is_reclaimable(rights: ClaimRights, one: Held) -> bool:
    """Tell whether something is in another queue and the claimant is entitled to its claim at the parting from it."""
    return rights.may_give(one.leaf) and queue_of(one.leaf) != queue_of(rights.claimant)


def preempt(
    shares: FairShares,
    claimant: str,
    task: Amounts,
    *,
    priority: Number,
    held: Sequence[Held],
    waiting: Mapping[str, Amounts] | None = None,
    steps: int = MAX_STEPS,
) -> Giving:
    """Choose what to give back so that a task of some priority fits; ``Held.value`` is a thing's priority.

    Things in the claimant's own queue with a lower priority than the task may always go. Things of equal priority, and
    things in other queues of no higher priority, go by the rules of ``reclaim``: only for a claimant that is entitled
    to them, and only as far as their owner exceeds its entitlement; inside the claimant's queue, the two leaves are
    compared. The objective is to minimise the highest priority given back, then the number of things, then their
    priorities.

    Args:
        shares: the tree, its usage and what its leaves wait for.
        claimant: the leaf.
        task: what it wants.
        priority: the priority of the task.
        held: what may be given back.
        waiting: leaf -> everything it waits for; by default, its next task.
        steps: the most partial choices to look at for each priority tried.

    Raises:
        ValueError, KeyError: as ``FairShares``.

    >>> from placement.allocators.fair_share.tree import Branch, Leaf
    >>> shares = FairShares(Branch("root", (Leaf("ann"), Leaf("bob"))), {"gpu": 4}, usage={"root/bob": {"gpu": 4}})
    >>> held = [Held(name, "root/bob", {"gpu": 2}, priority) for name, priority in [("batch", 1), ("web", 5)]]
    >>> [one.name for one in preempt(shares, "root/ann", {"gpu": 1}, priority=3, held=held).given_back]
    ['batch']
    """
    rights = ClaimRights(shares, claimant, task, waiting=waiting)
    if not rights.needs:
        return Giving(feasible=True)
    willing = [one for one in held if is_preemptible(rights, priority, one)]
    return _least_important(rights, willing, priority, steps=steps)


def _least_important(rights: ClaimRights, willing: Sequence[Held], priority: Number, *, steps: int) -> Giving:
    """Choose from what may go, minimising the highest priority given back."""
    is_free = partial(is_less_important, rights, priority)

    def up_to(highest: Number) -> Offers:
        return Offers(rights, [one for one in willing if one.value <= highest], is_free=is_free)

    in_order = up_to(priority).least_valuable()
    enough = priority if in_order is None else max([one.value for one in in_order])
    offers = up_to(enough)
    if not offers.are_few:
        giving = offers.chosen(steps=steps)
        # The greedy order may need a higher priority than the optimum, having filled purses with things of no use.
        return replace(giving, complete=giving.complete and enough == min([one.value for one in willing]))
    priorities = sorted({one.value for one in willing if one.value <= enough}) or [priority]
    return lowest(lambda highest: up_to(highest).chosen(steps=steps), priorities)


def is_preemptible(rights: ClaimRights, priority: Number, one: Held) -> bool:
    """Tell whether something may go for a claim of this priority."""
    return one.value <= priority and (is_less_important(rights, priority, one) or rights.may_give(one.leaf))


def is_less_important(rights: ClaimRights, priority: Number, one: Held) -> bool:
    """Tell whether something is in the claimant's own queue and has a lower priority."""
    return one.value < priority and queue_of(one.leaf) == queue_of(rights.claimant)


class Feasible(Protocol):
    """An answer that may or may not be feasible."""

    @property
    def feasible(self) -> bool:
        """Whether there is a solution."""


Answer = TypeVar("Answer", bound=Feasible)


def lowest(up_to: Callable[[Number], Answer], priorities: Sequence[Number]) -> Answer:
    """Return the feasible answer with the lowest of these sorted priorities, by bisection; the last one if none is."""
    answer = up_to(priorities[-1])
    low, high = 0, len(priorities) - 1
    while answer.feasible and low < high:
        middle = (low + high) // 2
        lower = up_to(priorities[middle])
        if lower.feasible:
            answer, high = lower, middle
        else:
            low = middle + 1
    return answer
