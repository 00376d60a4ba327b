"""Reclaim: which allocations other queues should give back so that a claimant who is entitled to more fits.

A queue is a branch with leaves; ``preempt`` deals with what happens inside one.

Where the paths to the claimant and to a giver part, there are two sibling nodes; they are compared in the lacking
classes alone. The claimant's node must be entitled to what it holds plus the task (``entitlement``). The giver's node,
and every node below it down to the giver's queue, keeps what it is entitled to. So only borrowed resources go back,
and only to those who lack what is theirs.

Only amounts count here. Whether what becomes free lies on one provider is not known.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from placement.allocators.fair_share.claim_rights import ClaimRights, queue_of
from placement.allocators.fair_share.offers import Giving, Held, Offers
from placement.allocators.fair_share.state import FairShares
from placement.allocators.fair_share.tree import Amounts

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
