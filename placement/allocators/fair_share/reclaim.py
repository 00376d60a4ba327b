"""Reclaim: which allocations other queues should give back so that a claimant below its share fits.

A queue is a branch with leaves; what happens inside one is ``preempt``'s.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from placement.allocators.entries import Number, exact
from placement.allocators.fair_share.fewest import Candidate, Search
from placement.allocators.fair_share.order import way
from placement.allocators.fair_share.state import FairShares
from placement.allocators.fair_share.tree import SEPARATOR, Amounts
from placement.allocators.natural_order import natural_key

MOST_STEPS = 20_000
"""How many partial sets are looked at, unless said otherwise."""


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
        complete: False if the steps ended: then there may be a better answer, or one at all.
    """

    feasible: bool
    given_back: tuple[Held, ...] = ()
    lacking: Amounts = field(default_factory=dict)
    complete: bool = True


def reclaim(
    shares: FairShares, claimant: str, task: Amounts, *, held: Sequence[Held], steps: int = MOST_STEPS
) -> Giving:
    """Choose what other queues give back so that a task fits: the fewest, of these the least valuable.

    Where the way to the claimant parts from the way to who gives, two branches stand beside each other. The giving one
    must be level with the claimant's or above it, now and after it has given, where the claimant's counts with the task
    and without anything given back inside it. That is what the order says with the task served; exhausted classes that
    the claimant does not ask for stay left out of the shares of branches. (Volcano wants strictly more, so that a
    claimant is left a task short of its share; and with a full cluster it finds nobody.)

    Only amounts count. Whether the freed ones lie on one provider is not known here.

    Args:
        shares: the tree, and what is used and waited for; it is left as it was.
        claimant: the leaf.
        task: what it wants.
        held: what may be given back; what is in the claimant's own queue is left alone.
        steps: how many partial sets are looked at.

    Raises:
        ValueError, KeyError: as ``FairShares``.

    >>> from placement.allocators.fair_share.tree import Branch, Leaf
    >>> root = Branch("root", (Branch("sci", (Leaf("ann"),)), Branch("eng", (Leaf("bob"),))))
    >>> shares = FairShares(root, {"gpu": 10})
    >>> shares.use("root/eng/bob", {"gpu": 10})
    >>> held = [Held(f"vm{number}", "root/eng/bob", {"gpu": 2}, value=number) for number in range(5)]
    >>> [one.name for one in reclaim(shares, "root/sci/ann", {"gpu": 4}, held=held).given_back]
    ['vm0', 'vm1']
    >>> reclaim(shares, "root/sci/ann", {"gpu": 6}, held=held).feasible
    False
    """
    lacking = lacking_for(shares, task)
    if not lacking:
        return Giving(feasible=True)
    usage, before = shares.usage(claimant), shares.wanted(claimant)
    candidates = [one for one in held if _has(one, lacking) and shares.usage(one.leaf)]
    with shares.supposing(lacking):
        shares.want(claimant, task)
        shares.use(claimant, {name: usage[name] + task.get(name, 0) for name in usage})
        court = _Court(shares, claimant)
        chosen = _chosen(court, candidates, lacking, steps)
        shares.use(claimant, usage)
    shares.want(claimant, before)
    return chosen


def lacking_for(shares: FairShares, task: Amounts) -> dict[str, int]:
    """Return how much of each class is missing for a task."""
    free = shares.free()
    return {name: amount - free[name] for name, amount in task.items() if amount and amount > free[name]}


def queue_of(leaf: str) -> str:
    """Return the path of the branch that a leaf is in."""
    return leaf.rpartition(SEPARATOR)[0]


def _has(one: Held, lacking: Amounts) -> bool:
    return any([one.amounts.get(name, 0) > 0 for name in lacking])


def _chosen(court: "_Court", held: Sequence[Held], lacking: Amounts, steps: int) -> Giving:
    names = tuple(lacking)
    giving = sorted([one for one in held if court.may_give(one.leaf)], key=court.dearness)
    candidates = [
        Candidate(tuple([one.amounts.get(name, 0) for name in names]), exact(one.value), _kind(one)) for one in giving
    ]
    search = Search(candidates, tuple(lacking.values()), steps=steps)
    found = search.fewest(lambda numbers: court.allows([giving[number] for number in numbers]))
    given_back = tuple([giving[number] for number in found or ()])
    return Giving(feasible=found is not None, given_back=given_back, lacking=lacking, complete=search.complete)


def _kind(one: Held) -> object:
    """Return what makes two candidates the same for every purpose but their names."""
    return one.leaf, exact(one.value), tuple(sorted(one.amounts.items()))


class _Court:
    """Who may give, in a state in which the claimant has its task already."""

    def __init__(self, shares: FairShares, claimant: str) -> None:
        self._shares = shares
        self._queue = queue_of(claimant)
        self._way = way(claimant)
        self._limits = {path: shares.level(path) for path in self._way}

    def may_give(self, leaf: str) -> bool:
        """Tell whether a leaf is in a branch that is level with the claimant's or above it."""
        return queue_of(leaf) != self._queue and self._is_above(leaf)

    def allows(self, given_back: Sequence[Held]) -> bool:
        """Tell whether the branches that give are still so when these were given back."""
        before = {one.leaf: self._shares.usage(one.leaf) for one in given_back}
        for one in given_back:
            usage = self._shares.usage(one.leaf)
            self._shares.use(one.leaf, {name: max(0, usage[name] - one.amounts.get(name, 0)) for name in usage})
        allowed = all([self._is_above(leaf) for leaf in before])
        for leaf, usage in before.items():
            self._shares.use(leaf, usage)
        return allowed

    def dearness(self, one: Held) -> tuple[object, ...]:
        """Return what sorts candidates: the least valuable first, then those whose branch has the most."""
        own, _limit = self._parting(one.leaf)
        amounts = tuple(sorted(one.amounts.items()))
        return exact(one.value), -self._shares.level(own), natural_key(one.leaf), amounts, natural_key(one.name)

    def _is_above(self, leaf: str) -> bool:
        giving, limit = self._parting(leaf)
        return self._shares.level(giving) >= limit

    def _parting(self, leaf: str) -> tuple[str, int]:
        """Return the branch of who gives beside the claimant's, and the weighted share of the latter."""
        theirs, ours = next(
            (theirs, ours) for theirs, ours in zip(way(leaf), self._way, strict=False) if theirs != ours
        )
        return theirs, self._limits[ours]
