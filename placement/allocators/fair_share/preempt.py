"""Preemption: which allocations have to make room for something more important, by priority."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Protocol, TypeVar

from placement.allocators.entries import Number
from placement.allocators.fair_share.claim_rights import ClaimRights, queue_of
from placement.allocators.fair_share.offers import Giving, Held, Offers
from placement.allocators.fair_share.reclaim import MAX_STEPS
from placement.allocators.fair_share.state import FairShares
from placement.allocators.fair_share.tree import Amounts


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
