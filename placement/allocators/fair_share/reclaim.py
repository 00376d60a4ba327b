"""Reclaim: which allocations other queues should give back so that a claimant who is entitled to more fits.

A queue is a branch with leaves; what happens inside one is ``preempt``'s.

Where the way to the claimant parts from the way to who gives, two nodes stand beside each other, and only amounts of
the classes that are lacking are looked at. The claimant's node must be entitled to what it has with the task
(``entitlement``). The giver's node, and each below it on the way to its queue, gives nothing that it is entitled to. So
only what is borrowed goes back, and to those who lack what is theirs.

Only amounts count. Whether the freed ones lie on one provider is not known here.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from placement.allocators.fair_share.court import Court, queue_of
from placement.allocators.fair_share.offers import Giving, Held, Offers
from placement.allocators.fair_share.state import FairShares
from placement.allocators.fair_share.tree import Amounts

MOST_STEPS = 20_000
"""How many partial choices are looked at, unless said otherwise."""


def reclaim(
    shares: FairShares,
    claimant: str,
    task: Amounts,
    *,
    held: Sequence[Held],
    waiting: Mapping[str, Amounts] | None = None,
    steps: int = MOST_STEPS,
) -> Giving:
    """Choose what other queues give back so that a task fits: the fewest, of these the least valuable.

    Args:
        shares: the tree, and what is used and waited for.
        claimant: the leaf.
        task: what it wants.
        held: what may be given back; what is in the claimant's own queue is left alone.
        waiting: leaf -> all that it waits for; its next task unless given.
        steps: how many partial choices are looked at.

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
    court = Court(shares, claimant, task, waiting=waiting)
    if not court.needs:
        return Giving(feasible=True)
    giving = Offers(court, reclaimable(court, held)).chosen(steps=steps)
    if giving.feasible:
        return giving
    others = {one.leaf for one in held if queue_of(one.leaf) != queue_of(claimant)}
    return replace(giving, partings=court.partings(others))


def reclaimable(court: Court, held: Iterable[Held]) -> list[Held]:
    """Return what others may give."""
    return [one for one in held if is_reclaimable(court, one)]


def is_reclaimable(court: Court, one: Held) -> bool:
    """Tell whether something is in another queue, and the claimant entitled to what it claims beside it."""
    return court.may_give(one.leaf) and queue_of(one.leaf) != queue_of(court.claimant)
