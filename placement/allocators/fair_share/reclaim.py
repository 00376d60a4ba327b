"""What should be given back so that a claimant fits: by entitlement, or by priority.

Only borrowed resources go back, and only to those who lack what is theirs (``rights``). By entitlement, only whoever is
then served next and passes both gates may take; a priority decides inside the claimant's own queue, too. ``reclaim``
counts amounts only, wherever they become free; ``Givers`` does the same for one place.
"""

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from typing import Protocol, TypeVar, cast

from placement.allocators import Budget, natural_key
from placement.allocators.entries import Number
from placement.allocators.fair_share.fewest import Choices, Cost, FewestSearch, Kind, fewest
from placement.allocators.fair_share.gate import is_next, overdraft
from placement.allocators.fair_share.order import added
from placement.allocators.fair_share.rights import ClaimRights, Freed, Held, Need, Parting, queue_of
from placement.allocators.fair_share.state import FairShares
from placement.allocators.fair_share.tree import Amounts, way

_Sort = tuple[str, tuple[int, ...], bool, tuple[int, ...], Freed]
"""What things of a kind have in common: the leaf, what each takes, whether it is bound by its owner's entitlement, what
it gives towards what is missing, and what it frees where."""


@dataclass(frozen=True)
class Givers:
    """What those who may be asked can give, in a place or anywhere.

    ``missing`` is how much more has to become free there, by sums. ``alike`` has the things of each kind, which differ
    in value and name alone, in ascending order of value.
    """

    rights: ClaimRights
    missing: Mapping[Need, int]
    alike: Sequence[tuple[_Sort, Sequence[Held]]]

    @property
    def held(self) -> list[Held]:
        """Everything that may go."""
        return [thing for _sort, things in self.alike for thing in things]

    @cached_property
    def bound(self) -> Cost | None:
        """A lower bound, by sums, on the cost; None if all together are not enough."""
        return FewestSearch(self.choices, Budget(0)).bound

    def could_free(self, missing: Mapping[Need, int]) -> bool:
        """Tell whether all together free this much, by sums."""
        return all([sum([gives(thing).get(need, 0) for thing in self.held]) >= much for need, much in missing.items()])

    def bound_with_what_is_kept(self, budget: Budget, below: Cost | None) -> Cost | None:
        """Return the same, given what owners have to keep; None if there is none, or none that is below a cost."""
        choice = FewestSearch(self.choices, budget).least(below)
        return self.bound if budget.was_hit else choice and choice[0]

    @property
    def least_value(self) -> Number | None:
        """The lowest value up to which all together are enough, by sums; None if they never are."""
        needed = {need: amount for need, amount in self.missing.items() if amount > 0}
        for thing in sorted(self.held, key=lambda thing: thing.value):
            left = {need: amount - gives(thing).get(need, 0) for need, amount in needed.items()}
            needed = {need: amount for need, amount in left.items() if amount > 0}
            if not needed:
                return thing.value
        return None

    def up_to(self, highest: Number) -> "Givers":
        """Return a copy with only the things worth no more than this."""
        ends = [bisect_right(things, highest, key=lambda thing: thing.value) for _sort, things in self.alike]
        kinds = zip(self.alike, ends, strict=True)
        return replace(self, alike=[(sort, things[:end]) for (sort, things), end in kinds if end])

    @cached_property
    def choices(self) -> Choices:
        """The kinds to choose from."""
        leaves = dict.fromkeys([sort[0] for sort, _things in self.alike])
        kept = dict.fromkeys([path for leaf in leaves for path in self.rights.keepers(leaf)])
        numbers = {path: number for number, path in enumerate(kept)}
        purses = {leaf: tuple([numbers[path] for path in self.rights.keepers(leaf)]) for leaf in leaves}
        limits = {need: amount for need, amount in self.rights.needs.items() if need[0] != self.rights.root}
        inside = {leaf: [(name, path in way(queue_of(leaf))) for path, name in limits] for leaf in leaves}
        kinds = []
        for (leaf, takes, is_bound, towards_missing, _freed), things in self.alike:
            towards_limits = [things[0].amounts.get(name, 0) * is_inside for name, is_inside in inside[leaf]]
            values = tuple([thing.worth for thing in things])
            kinds.append(Kind((*towards_missing, *towards_limits), takes, values, purses[leaf], is_bound))
        needed = (*self.missing.values(), *limits.values())
        return Choices(kinds, needed, [self.rights.surplus(path) for path in kept])

    def chosen(self, counts: Sequence[int]) -> list[Held]:
        """Return this many things of each kind, the least valuable first; of equals, those that come first by name."""
        chosen: list[Held] = []
        for count, (_sort, things) in zip(counts, self.alike, strict=False):
            cheapest = [thing for thing in things if count and thing.value <= things[count - 1].value]
            chosen += sorted(cheapest, key=lambda thing: thing.dearness)[:count]
        return chosen


def gives(thing: Held) -> Mapping[Need, int]:
    """Return how much something frees of what may be needed."""
    return cast("Mapping[Need, int]", thing.amounts) if thing.inside is None else thing.inside


def givers_of(rights: ClaimRights, held: Iterable[Held], *, missing: Mapping[Need, int]) -> Givers:
    """Group what may go into kinds; those come first whose owners have the larger surplus over their entitlement."""
    alike = defaultdict[_Sort, list[Held]](list)
    for thing in held:
        takes = tuple([thing.amounts.get(name, 0) for name in rights.classes])
        inside = gives(thing)
        towards_missing = tuple([inside.get(need, 0) for need in missing])
        is_bound = not rights.is_free(thing.leaf, thing.value)
        alike[thing.leaf, takes, is_bound, towards_missing, thing.freed].append(thing)

    def preference(leaf: str) -> tuple[object, ...]:
        surplus = [-sum(rights.surplus(path)) for path in rights.keepers(leaf)] or [0]
        return surplus[0], surplus[-1], natural_key(leaf)

    leaves = sorted({sort[0] for sort in alike}, key=preference)
    ranks = {leaf: rank for rank, leaf in enumerate(leaves)}
    for things in alike.values():
        things.sort(key=lambda thing: thing.worth)
    return Givers(rights, missing, sorted(alike.items(), key=lambda kind: (ranks[kind[0][0]], kind[0][1:])))


def all_freed(held: Iterable[Held]) -> dict[int, Counter[str]]:
    """Return provider -> class -> the amount freed if all these go."""
    freed: dict[int, Counter[str]] = defaultdict(Counter)
    for thing in held:
        for provider, name, amount in thing.freed:
            freed[provider][name] += amount
    return freed


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


MAX_STEPS = 20_000
"""The default for how many partial choices to look at."""


def reclaim(
    shares: FairShares,
    claimant: str,
    task: Amounts,
    *,
    held: Sequence[Held],
    priority: Number | None = None,
    steps: int = MAX_STEPS,
) -> Giving:
    """Choose what others give back so that a task fits: the fewest things, among those the least valuable.

    What the claimant holds is left alone. Infeasible also if the claimant would not be served next then. With a
    ``priority``, values are priorities. Things in the claimant's own queue with a lower one may always go; those of
    equal priority, and in other queues those of no higher one, only by entitlement. The highest priority given back is
    minimised first, then the number of things, then their priorities. Raises as ``FairShares``.

    >>> from placement.allocators.fair_share.tree import Branch, Leaf
    >>> root = Branch("root", (Branch("sci", (Leaf("ann"),)), Branch("eng", (Leaf("bob"),))))
    >>> shares = FairShares(root, {"gpu": 10}, usage={"root/eng/bob": {"gpu": 10}})
    >>> held = [Held(f"vm{number}", "root/eng/bob", {"gpu": 2}, value=number) for number in range(5)]
    >>> [thing.name for thing in reclaim(shares, "root/sci/ann", {"gpu": 4}, held=held).given_back]
    ['vm0', 'vm1']
    """
    rights = ClaimRights(shares, claimant, task, priority=priority)
    if not rights.needs:
        return Giving(feasible=True)
    askable = [thing for thing in held if rights.may_ask(thing.leaf, thing.value)]
    useful = [thing for thing in askable if any(map(thing.amounts.get, rights.classes))]
    givers = givers_of(rights, useful, missing=dict(rights.lacking.items()))
    if priority is not None:
        return lowest(lambda highest: _chosen(givers.up_to(highest), steps), _priorities(givers) or [priority])
    giving = _chosen(givers, steps)
    if giving.feasible and is_fair_to_take(shares, rights, giving.given_back):
        return giving
    return replace(giving, feasible=False, given_back=(), partings=rights.partings([thing.leaf for thing in held]))


def _chosen(givers: Givers, steps: int) -> Giving:
    """Choose the fewest things, among those the least valuable, within this many partial choices."""
    counts, complete = fewest(givers.choices, steps=steps)
    given_back = tuple(sorted(givers.chosen(counts or ()), key=lambda thing: thing.dearness))
    partings = givers.rights.partings([thing.leaf for thing in given_back or givers.held])
    return Giving(counts is not None, given_back, givers.rights.lacking, complete, partings)


def _priorities(givers: Givers) -> list[Number]:
    """Return the priorities that may be the highest to go, ascending: up to what taking in their order leads to."""
    in_order = FewestSearch(givers.choices, Budget(0)).in_order_of_value()
    taken = givers.held if in_order is None else givers.chosen(in_order[1])
    enough = max([thing.value for thing in taken], default=0)
    return sorted({thing.value for thing in givers.held if thing.value <= enough})


def is_fair_to_take(shares: FairShares, rights: ClaimRights, given_back: Sequence[Held]) -> bool:
    """Tell whether a claimant that is given this is then served next, and passes both gates.

    Those who gave want it back, and the others what ``shares`` says they wait for.
    """
    claimant, task = rights.claimant, rights.task
    waiting = {leaf: shares.pending_task(leaf) for leaf in shares.leaves()}
    with shares.restored():
        for thing in given_back:
            freed = {name: thing.amounts.get(name, 0) for name in shares.classes}
            shares.use(thing.leaf, added(shares.usage(thing.leaf), {name: -amount for name, amount in freed.items()}))
            if not any(waiting[thing.leaf].values()):
                waiting[thing.leaf] = freed
        if not is_next(shares, claimant, {**waiting, claimant: task}):
            return False
        shares.use(claimant, added(shares.usage(claimant), task))
        return overdraft(shares, {claimant: task}) is None


class _Feasible(Protocol):
    @property
    def feasible(self) -> bool: ...


Answer = TypeVar("Answer", bound=_Feasible)


def lowest(up_to: Callable[[Number], Answer], priorities: Sequence[Number]) -> Answer:
    """Return the feasible answer with the lowest of these sorted priorities, by bisection; the last one if none is."""
    answer = cache(up_to)
    if not answer(priorities[-1]).feasible:
        return answer(priorities[-1])
    lowest_at = bisect_left(priorities[:-1], 1, key=lambda priority: answer(priority).feasible)
    return answer(priorities[lowest_at])
