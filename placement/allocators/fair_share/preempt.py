"""Preemption inside one queue: which allocations make room for something more important, by priority, then share."""

from collections.abc import Sequence

from placement.allocators.entries import Number, exact
from placement.allocators.fair_share.reclaim import Giving, Held, lacking_for, queue_of
from placement.allocators.fair_share.state import FairShares
from placement.allocators.fair_share.tree import Amounts
from placement.allocators.natural_order import natural_key


def preempt(shares: FairShares, claimant: str, task: Amounts, *, priority: Number, held: Sequence[Held]) -> Giving:
    """Choose what the claimant's own queue gives back so that a task fits; ``Held.value`` is the priority.

    The lowest priority goes first; of one priority, what belongs to the leaf with the largest weighted share. What has
    a lower priority than the task may go always; what has the same only from another leaf that is level with the
    claimant or above it afterwards, the task counted. What turns out not to be needed is kept, the most important
    first.

    Args:
        shares: the tree, and what is used; it is left as it was.
        claimant: the leaf.
        task: what it wants.
        priority: how important that is.
        held: what may be given back; what is in other queues is left alone.

    Raises:
        ValueError, KeyError: as ``FairShares``.

    >>> from placement.allocators.fair_share.tree import Branch, Leaf
    >>> shares = FairShares(Branch("root", (Leaf("ann"), Leaf("bob"))), {"gpu": 4})
    >>> shares.use("root/bob", {"gpu": 4})
    >>> held = [Held(name, "root/bob", {"gpu": 2}, priority) for name, priority in [("batch", 1), ("web", 5)]]
    >>> [one.name for one in preempt(shares, "root/ann", {"gpu": 1}, priority=3, held=held).given_back]
    ['batch']
    """
    lacking = lacking_for(shares, task)
    own = [one for one in held if queue_of(one.leaf) == queue_of(claimant)]
    before = {leaf: shares.usage(leaf) for leaf in [claimant, *[one.leaf for one in own]]}
    shares.use(claimant, {name: amount + task.get(name, 0) for name, amount in before[claimant].items()})
    chosen = _chosen(
        shares,
        claimant,
        [one for one in own if exact(one.value) <= exact(priority)],
        lacking=lacking,
        priority=priority,
    )
    for leaf, usage in before.items():
        shares.use(leaf, usage)
    missing = _missing(lacking, chosen)
    return Giving(feasible=not missing, given_back=() if missing else tuple(_needed(lacking, chosen)), lacking=lacking)


def _chosen(
    shares: FairShares, claimant: str, held: Sequence[Held], *, lacking: Amounts, priority: Number
) -> list[Held]:
    """Take one after the other until nothing is lacking."""
    chosen: list[Held] = []
    for one in sorted(held, key=lambda one: _dearness(shares, one)):
        missing = _missing(lacking, chosen)
        if not missing:
            break
        if any([one.amounts.get(name, 0) for name in missing]):
            usage = shares.usage(one.leaf)
            shares.use(one.leaf, {name: max(0, usage[name] - one.amounts.get(name, 0)) for name in usage})
            if exact(one.value) < exact(priority) or _is_still_above(shares, one.leaf, claimant):
                chosen.append(one)
            else:
                shares.use(one.leaf, usage)
    return chosen


def _is_still_above(shares: FairShares, leaf: str, claimant: str) -> bool:
    return leaf != claimant and shares.level(leaf) >= shares.level(claimant)


def _dearness(shares: FairShares, one: Held) -> tuple[object, ...]:
    return exact(one.value), -shares.level(one.leaf), natural_key(one.leaf), natural_key(one.name)


def _missing(lacking: Amounts, chosen: Sequence[Held]) -> dict[str, int]:
    """Return what is still lacking when these are given back."""
    left = {name: amount - sum([one.amounts.get(name, 0) for one in chosen]) for name, amount in lacking.items()}
    return {name: amount for name, amount in left.items() if amount > 0}


def _needed(lacking: Amounts, chosen: Sequence[Held]) -> list[Held]:
    """Return these without what is not needed, beginning with the most important."""
    kept = list(chosen)
    for one in reversed(chosen):
        without = [other for other in kept if other is not one]
        if not _missing(lacking, without):
            kept = without
    return kept
