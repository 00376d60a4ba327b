"""Preemption: which allocations make room for something more important, by priority."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Protocol, TypeVar

from placement.allocators.entries import Number
from placement.allocators.fair_share.court import Court, queue_of
from placement.allocators.fair_share.offers import Giving, Held, Offers
from placement.allocators.fair_share.reclaim import MOST_STEPS
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
    steps: int = MOST_STEPS,
) -> Giving:
    """Choose what is given back so that a task of some priority fits; ``Held.value`` is the priority.

    What has a lower priority than the task and is in the claimant's own queue may go always. What has the same, or is
    in another queue and has no higher one, goes as in ``reclaim``: only to who is entitled to it, and only as far as
    its owner has more than it is entitled to; inside the own queue that is asked about the two leaves. The highest
    priority that gives is as low as can be; then it is the fewest, then those with the lowest priorities.

    Args:
        shares: the tree, and what is used and waited for.
        claimant: the leaf.
        task: what it wants.
        priority: how important that is.
        held: what may be given back.
        waiting: leaf -> all that it waits for; its next task unless given.
        steps: how many partial choices are looked at, for each priority tried.

    Raises:
        ValueError, KeyError: as ``FairShares``.

    >>> from placement.allocators.fair_share.tree import Branch, Leaf
    >>> shares = FairShares(Branch("root", (Leaf("ann"), Leaf("bob"))), {"gpu": 4}, usage={"root/bob": {"gpu": 4}})
    >>> held = [Held(name, "root/bob", {"gpu": 2}, priority) for name, priority in [("batch", 1), ("web", 5)]]
    >>> [one.name for one in preempt(shares, "root/ann", {"gpu": 1}, priority=3, held=held).given_back]
    ['batch']
    """
    court = Court(shares, claimant, task, waiting=waiting)
    if not court.needs:
        return Giving(feasible=True)
    return _least_important(court, [one for one in held if is_preemptible(court, priority, one)], priority, steps=steps)


def _least_important(court: Court, willing: Sequence[Held], priority: Number, *, steps: int) -> Giving:
    """Choose from what may go, the highest priority being as low as can be."""
    is_free = partial(is_less_important, court, priority)

    def up_to(highest: Number) -> Offers:
        return Offers(court, [one for one in willing if one.value <= highest], is_free=is_free)

    in_order = up_to(priority).least_valuable()
    enough = priority if in_order is None else max([one.value for one in in_order])
    offers = up_to(enough)
    if not offers.are_few:
        giving = offers.chosen(steps=steps)
        # What the order of values needs may be more than is needed: of purses, it may have filled some in vain.
        return replace(giving, complete=giving.complete and enough == min([one.value for one in willing]))
    priorities = sorted({one.value for one in willing if one.value <= enough}) or [priority]
    return lowest(lambda highest: up_to(highest).chosen(steps=steps), priorities)


def is_preemptible(court: Court, priority: Number, one: Held) -> bool:
    """Tell whether something may go for a claim of some priority."""
    return one.value <= priority and (is_less_important(court, priority, one) or court.may_give(one.leaf))


def is_less_important(court: Court, priority: Number, one: Held) -> bool:
    """Tell whether something in the claimant's own queue has a lower priority."""
    return one.value < priority and queue_of(one.leaf) == queue_of(court.claimant)


class Feasible(Protocol):
    """An answer that there may be."""

    @property
    def feasible(self) -> bool:
        """Whether there is one."""


Answer = TypeVar("Answer", bound=Feasible)


def lowest(up_to: Callable[[Number], Answer], priorities: Sequence[Number]) -> Answer:
    """Return the answer with the lowest of these priorities for which there is one; they are halved each time."""
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
