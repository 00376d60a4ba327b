"""Who may be asked to give something back for a claim, and what should be: by entitlement, or by priority.

Nobody keeps less than its entitlement, nor gets more. Where the paths to the claimant and to a giver part, there are
two sibling nodes. From there down, each node on the claimant's side must be entitled to what it holds plus the task,
and each node on the giver's side keeps what it is entitled to. Whoever is then served next and passes both gates may
take. A claim with a *priority* may also take what is less important in the claimant's own queue, whoever is entitled to
it; of others, only what is no more important than itself.

``reclaim`` counts amounts only, wherever they become free; ``Givers`` does the same for one place.
"""

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cache, cached_property
from typing import Protocol, TypeVar, cast

from placement.allocators import Budget, Number, exact, natural_key
from placement.allocators.fair_share.fewest import Choices, Cost, FewestSearch, Kind, fewest
from placement.allocators.fair_share.gate import is_next, overdraft
from placement.allocators.fair_share.order import added
from placement.allocators.fair_share.state import FairShares
from placement.allocators.fair_share.tree import SEPARATOR, Amounts, way

Need = str | tuple[int, str]
"""A class that has to be free in a place as a whole, or in a numbered part of it."""

Freed = tuple[tuple[int, str, int], ...]
"""What becomes free, sorted: the number of a provider, a class, and the amount."""


@dataclass(frozen=True, slots=True)
class Held:
    """Something that can only be given back whole.

    Args:
        leaf: who uses it.
        amounts: what it frees of the classes that count.
        value: its worth, or its priority; the least valuable goes first.
        freed: everything it frees, and where; empty if places do not matter.
        inside: how much it frees of what may be needed in a place; None if amounts fit wherever they become free.
    """

    name: str
    leaf: str
    amounts: Amounts
    value: Number = 0
    freed: Freed = ()
    inside: Mapping[Need, int] | None = None

    @property
    def worth(self) -> int | Fraction:
        """The value exactly as written, to add and compare."""
        return self.value if isinstance(self.value, int) else exact(self.value)

    @property
    def dearness(self) -> tuple[object, ...]:
        """The sort key: value, then name."""
        return self.worth, natural_key(self.leaf), natural_key(self.name)


@dataclass(frozen=True, slots=True)
class Parting:
    """Where the paths to a claimant and to a giver part, the level that decides: by class what the two nodes hold.

    The claimant's node holds that with its claim. Beside it is what each of the two is entitled to.
    """

    claimant: str
    giver: str
    claims: Amounts
    claimant_entitled: Mapping[str, float]
    holds: Amounts
    giver_entitled: Mapping[str, float]


class ClaimRights:
    """The needs of a claim, and what everybody is entitled to, given that the claimant wants more.

    ``needs`` is what has to become free: (branch, class) -> amount, for the root and every limit in the way.
    Entitlements are protected in ``classes``, by default the lacking ones.
    """

    def __init__(
        self,
        shares: FairShares,
        claimant: str,
        task: Amounts,
        *,
        classes: Iterable[str] | None = None,
        priority: Number | None = None,
    ) -> None:
        self.root = shares.root
        self.claimant = claimant
        self.task = task
        self.priority = priority
        self.needs = {
            (path, name): task[name] - free[name]
            for path, free in shares.bounds(claimant)
            for name in task
            if task[name] and task[name] > free[name]
        }
        self.lacking = {name: amount for (path, name), amount in self.needs.items() if path == self.root}
        needed = [name for _path, name in self.needs] if classes is None else classes
        self.classes = tuple(dict.fromkeys(needed))
        self._shares = shares
        self._entitlements = shares.entitlements(self.classes, more={claimant: task})
        self._claimant_path = frozenset(way(claimant))
        self._queue = queue_of(claimant)
        self.keepers = cache(lambda leaf: tuple([path for path in way(leaf) if path not in self._claimant_path]))
        """Leaf -> the nodes that keep their entitlement when it gives: from the parting down to it."""
        self.surplus = cache(self._spare)
        self._may_give = cache(lambda leaf: any([len(way(p)) > self._first_entitled for p in self.keepers(leaf)[:1]]))

    def may_ask(self, leaf: str, value: Number) -> bool:
        """Tell whether something of a leaf, worth this much, may go, as far as the claimant is entitled to it."""
        is_important = self.priority is not None and value > self.priority
        return not is_important and (self._may_give(leaf) or self.is_free(leaf, value))

    def is_free(self, leaf: str, value: Number) -> bool:
        """Tell whether something may go whatever its owner is entitled to: less important, in the same queue."""
        return self.priority is not None and value < self.priority and queue_of(leaf) == self._queue

    @cached_property
    def _first_entitled(self) -> int:
        """The first of the claimant's nodes from which on all are entitled to what they would hold."""
        beyond = [
            number
            for number, path in enumerate(way(self.claimant), start=1)
            for name, amount in self._with_claim(path).items()
            if amount > self._entitlements.amounts(path)[name]
        ]
        return max(beyond, default=0)

    def _with_claim(self, path: str) -> dict[str, int]:
        used = self._shares.usage(path)
        return {name: used[name] + self.task.get(name, 0) for name in self.classes}

    def _spare(self, path: str) -> tuple[int, ...]:
        """Return, by class, how many whole units a node may give."""
        entitled, used = self._entitlements.amounts(path), self._shares.usage(path)
        return tuple([max(0, int(used[name] - entitled[name])) for name in self.classes])

    def partings(self, leaves: Iterable[str]) -> tuple[Parting, ...]:
        """Return the levels that decide about these leaves, with their figures."""
        partings = []
        for giver in sorted({self.keepers(leaf)[0] for leaf in dict.fromkeys(leaves) if self.keepers(leaf)}):
            claimant, used = way(self.claimant)[len(way(giver)) - 1], self._shares.usage(giver)
            amounts = [self._entitlements.amounts(path).items() for path in (claimant, giver)]
            entitled = [{name: float(amount) for name, amount in items} for items in amounts]
            holds = {name: used[name] for name in self.classes}
            partings.append(Parting(claimant, giver, self._with_claim(claimant), entitled[0], holds, entitled[1]))
        return tuple(partings)


def queue_of(leaf: str) -> str:
    """Return the path of a leaf's branch."""
    return leaf.rpartition(SEPARATOR)[0]


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
        needed = dict(self.missing)
        for thing in sorted(self.held, key=lambda thing: thing.value):
            needed = {need: amount - gives(thing).get(need, 0) for need, amount in needed.items() if amount > 0}
            if max(needed.values(), default=0) <= 0:
                return thing.value
        return None

    def up_to(self, highest: Number) -> "Givers":
        """Return a copy with only the things worth no more than this."""
        alike = [(sort, [thing for thing in things if thing.value <= highest]) for sort, things in self.alike]
        return replace(self, alike=[(sort, things) for sort, things in alike if things])

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
            if count:
                last = things[count - 1].value
                cheapest = [thing for thing in things if thing.value <= last]
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
        if len(things) > 1:
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
        # The highest to go is none above what taking in the order of priorities leads to.
        in_order = FewestSearch(givers.choices, Budget(0)).in_order_of_value()
        taken = givers.held if in_order is None else givers.chosen(in_order[1])
        enough = max([thing.value for thing in taken], default=0)
        priorities = sorted({thing.value for thing in givers.held if thing.value <= enough})
        return lowest(lambda highest: _chosen(givers.up_to(highest), steps), priorities or [priority])
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
