"""What should be given back so that a claimant fits: by entitlement (``reclaim``) or by priority (``preempt``).

Only borrowed resources go back, and only to those who lack what is theirs (``tenants``). ``reclaim`` takes only for
whoever is then served next and passes both gates; in ``preempt``, priorities decide inside the claimant's own queue.

Only amounts count here. Whether what becomes free lies on one provider is not known.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Protocol, TypeVar

from placement.allocators.entries import Number
from placement.allocators.fair_share.fewest import fewest
from placement.allocators.fair_share.gate import is_next, overdraft
from placement.allocators.fair_share.order import added, restored
from placement.allocators.fair_share.state import FairShares
from placement.allocators.fair_share.tenants import (
    ClaimRights,
    Held,
    Judgement,
    Parting,
    dearness,
    never,
    queue_of,
    wherever_they_are,
)
from placement.allocators.fair_share.tree import Amounts


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
    shares: FairShares, claimant: str, task: Amounts, *, held: Sequence[Held], steps: int = MAX_STEPS
) -> Giving:
    """Choose what others give back so that a task fits: the fewest things, among those the least valuable.

    Infeasible also if the claimant would not be served next then (see ``is_fair_to_take``).

    What the claimant holds is left alone.

    Raises:
        ValueError, KeyError: as ``FairShares``.

    >>> from placement.allocators.fair_share.tree import Branch, Leaf
    >>> root = Branch("root", (Branch("sci", (Leaf("ann"),)), Branch("eng", (Leaf("bob"),))))
    >>> shares = FairShares(root, {"gpu": 10}, usage={"root/eng/bob": {"gpu": 10}})
    >>> held = [Held(f"vm{number}", "root/eng/bob", {"gpu": 2}, value=number) for number in range(5)]
    >>> [each.name for each in reclaim(shares, "root/sci/ann", {"gpu": 4}, held=held).given_back]
    ['vm0', 'vm1']
    >>> reclaim(shares, "root/sci/ann", {"gpu": 6}, held=held).feasible
    False
    """
    rights = ClaimRights(shares, claimant, task)
    if not rights.needs:
        return Giving(feasible=True)
    giving = _chosen(rights, [each for each in held if is_reclaimable(rights, each)], is_free=never, steps=steps)
    if giving.feasible and is_fair_to_take(shares, rights, giving.given_back):
        return giving
    others = {each.leaf for each in held}
    return replace(giving, feasible=False, given_back=(), partings=rights.partings(others))


def _chosen(rights: ClaimRights, held: Iterable[Held], *, is_free: Judgement, steps: int) -> Giving:
    """Choose the fewest things, among those the least valuable, within this many partial choices."""
    givers = wherever_they_are(rights, held, is_free=is_free)
    counts, complete = fewest(givers.choices, steps=steps)
    given_back = tuple(sorted([tenant.held for tenant in givers.chosen(counts or ())], key=dearness))
    leaves = [each.leaf for each in given_back or [tenant.held for tenant in givers.tenants]]
    return Giving(
        feasible=counts is not None,
        given_back=given_back,
        lacking=rights.lacking,
        complete=complete,
        partings=rights.partings(leaves),
    )


def is_reclaimable(rights: ClaimRights, held: Held) -> bool:
    """Tell whether something is another's, and the claimant is entitled to its claim from the parting on."""
    return rights.may_give(held.leaf)


def is_fair_to_take(shares: FairShares, rights: ClaimRights, given_back: Sequence[Held]) -> bool:
    """Tell whether a claimant that is given this is then served next, and passes both gates.

    Those who gave want it back, and the others what ``shares`` says they wait for.
    """
    claimant, task = rights.claimant, rights.task
    waiting = {leaf: shares.wanted(leaf) for leaf in shares.leaves()}
    with restored(shares):
        for each in given_back:
            names = shares.classes
            freed = {name: -each.amounts.get(name, 0) for name in names}
            shares.use(each.leaf, added(shares.usage(each.leaf), freed))
            if not any(waiting[each.leaf].values()):
                waiting[each.leaf] = {name: each.amounts.get(name, 0) for name in names}
        if not is_next(shares, claimant, {**waiting, claimant: task}):
            return False
        shares.use(claimant, added(shares.usage(claimant), task))
        return overdraft(shares, {claimant: task}) is None


def preempt(
    shares: FairShares,
    claimant: str,
    task: Amounts,
    *,
    priority: Number,
    held: Sequence[Held],
    steps: int = MAX_STEPS,
) -> Giving:
    """Choose what to give back so that a task of some priority fits; ``Held.value`` is a thing's priority.

    Things in the claimant's own queue with a lower priority than the task may always go. Things of equal priority, and
    things in other queues of no higher priority, go by entitlement: only for a claimant that is entitled to them, and
    only as far as their owner exceeds its entitlement. The objective is to minimise the highest priority given back,
    then the number of things, then their priorities.

    Raises:
        ValueError, KeyError: as ``FairShares``.

    >>> from placement.allocators.fair_share.tree import Branch, Leaf
    >>> shares = FairShares(Branch("root", (Leaf("ann"), Leaf("bob"))), {"gpu": 4}, usage={"root/bob": {"gpu": 4}})
    >>> held = [Held(name, "root/bob", {"gpu": 2}, priority) for name, priority in [("batch", 1), ("web", 5)]]
    >>> [each.name for each in preempt(shares, "root/ann", {"gpu": 1}, priority=3, held=held).given_back]
    ['batch']
    """
    rights = ClaimRights(shares, claimant, task)
    if not rights.needs:
        return Giving(feasible=True)
    willing = [each for each in held if is_preemptible(priority, rights, each)]
    is_free = partial(is_less_important, priority)
    in_order = wherever_they_are(rights, willing, is_free=is_free).least_valuable()
    enough = priority if in_order is None else max([each.value for each in in_order])
    priorities = sorted({each.value for each in willing if each.value <= enough}) or [priority]

    def up_to(highest: Number) -> Giving:
        return _chosen(rights, [each for each in willing if each.value <= highest], is_free=is_free, steps=steps)

    return lowest(up_to, priorities)


def is_preemptible(priority: Number, rights: ClaimRights, held: Held) -> bool:
    """Tell whether something may go for a claim of this priority."""
    return held.value <= priority and (is_less_important(priority, rights, held) or rights.may_give(held.leaf))


def is_less_important(priority: Number, rights: ClaimRights, held: Held) -> bool:
    """Tell whether something is in the claimant's own queue and has a lower priority."""
    return held.value < priority and queue_of(held.leaf) == queue_of(rights.claimant)


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
