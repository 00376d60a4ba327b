"""The gates for claims: whether taking something is fair.

``decide`` is for claims while others are known to wait: what is free is handed out in the order of service, and a claim
is fair if its turn comes while it still fits. ``overdraft`` is for when nobody says who waits: all are assumed to want
more of what they use, and what the taker holds is compared with what it is entitled to (``entitlement``). Both rest on
the same entitlements, so that whoever is next passes both.
"""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import Literal, NamedTuple

from placement.allocators import Number, exact
from placement.allocators.fair_share.order import MAX_STEPS, Behind, Filling, Task, added, fill, order, want
from placement.allocators.fair_share.state import FairShares
from placement.allocators.fair_share.tree import SEPARATOR, Amounts, way

GateReason = Literal["fair", "no capacity", "undecided", "others first", "over the limit"]


class Competitor(NamedTuple):
    """A waiting leaf and its task."""

    leaf: str
    task: Task


@dataclass(frozen=True, slots=True)
class Limit:
    """A bound on what a queue may hold, in amounts of a class, or as the largest fraction of any class if None."""

    path: str
    allowance: float
    would_hold: float
    resource_class: str | None = None


@dataclass(frozen=True, slots=True)
class Decision:
    """How many tasks of a claim are let through, and why no more.

    Args:
        reason: ``fair``: the claimant's turns come before others need what it takes. ``no capacity``: the next task
            does not fit in any case. ``undecided``: too many wait to tell; allowed. ``others first``: what is free goes
            to others, who have less. ``over the limit``: a queue would hold too much.
        count: how many tasks have their turn while they fit.
        ahead: leaf -> how many of its tasks come before the next task of the claim.
        behind: the two nodes that put the first of these before the claimant.
        limit: the limit that would be exceeded.
    """

    reason: GateReason
    count: int
    ahead: Mapping[str, int]
    behind: Behind | None = None
    limit: Limit | None = None

    @property
    def allowed(self) -> bool:
        """Whether the claim is let through as a whole."""
        return self.reason in ("fair", "no capacity", "undecided")


def decide(
    shares: FairShares,
    claim: Competitor,
    *,
    competitors: Sequence[Competitor] = (),
    limits: Mapping[str, Number] | None = None,
    steps: int = MAX_STEPS,
) -> Decision:
    """Decide how many tasks of a claim, a finite number, are fair. ``shares`` is restored afterwards.

    Progressive filling hands out what is free, task by task, to whoever is next. If the claim's turn comes while it
    still fits, the claim is fair; nothing is left idle for the sake of those who could not use it. The claimant's
    entries among the competitors come after the claim. ``limits`` has the largest fraction of any class, 0..1, that
    branches above the claimant may hold. Raises as ``FairShares``.
    """
    leaf, (amounts, demand) = claim.leaf, (claim.task.amounts, claim.task.count or 0)
    if not any(amounts.values()):
        return Decision("fair", demand, {})
    # No limit forbids so many tasks.
    within = bisect_left(
        range(demand), 1, key=lambda count: _exceeded(shares, leaf, _times(amounts, count + 1), limits) is not None
    )
    pending = {leaf: [Task(amounts, within)]}
    for competitor in competitors:
        pending.setdefault(competitor.leaf, []).append(competitor.task)
    with shares.restored():
        filling = fill(shares, pending, steps=steps, until=leaf)
    count = filling.served[leaf][0] if within else 0
    if count == demand:
        return Decision("fair", count, {})
    with shares.restored():
        shares.use(leaf, added(shares.usage(leaf), _times(amounts, count)))
        if count == within:
            return Decision("over the limit", count, {}, limit=_exceeded(shares, leaf, amounts, limits))
        if any([amount > shares.free()[name] for name, amount in amounts.items() if amount]):
            return Decision("no capacity", count, {})
    ahead = {path: sum(served) for path, served in filling.served.items() if path != leaf and any(served)}
    if not filling.complete:
        return Decision("undecided", count, ahead)
    return Decision("others first", count, ahead, behind=_behind(shares, leaf, pending, filling))


def decide_each(
    shares: FairShares,
    claims: Sequence[Competitor],
    *,
    competitors: Sequence[Competitor] = (),
    limits: Mapping[str, Number] | None = None,
) -> list[Decision]:
    """Decide about several claims, one after another; those that come later are among those who wait.

    What is let through stays in use in ``shares``. Steps are shared evenly among the claims.
    """
    decisions = []
    for number, claim in enumerate(claims, start=1):
        waiting = [*claims[number:], *competitors]
        decision = decide(shares, claim, competitors=waiting, limits=limits, steps=MAX_STEPS // len(claims))
        shares.use(claim.leaf, added(shares.usage(claim.leaf), _times(claim.task.amounts, decision.count)))
        decisions.append(decision)
    return decisions


def _behind(shares: FairShares, leaf: str, pending: Mapping[str, Sequence[Task]], filling: Filling) -> Behind | None:
    """Return what puts a leaf behind the first of those who are served before its claim."""
    first = next((turn for turn, served in enumerate(filling.order) if served != leaf), None)
    if first is None:
        return None
    with shares.restored():
        fill(shares, pending, steps=first)
        return order(shares, [filling.order[first], leaf])[1].behind


def _times(amounts: Amounts, count: int) -> Amounts:
    return {name: amount * count for name, amount in amounts.items()}


def _exceeded(shares: FairShares, claimant: str, more: Amounts, limits: Mapping[str, Number] | None) -> Limit | None:
    """Return the first limit above the claimant, of the claim's terms or of the tree, that would be exceeded."""
    totals, limits = shares.totals(), limits or {}
    for path in filter(limits.__contains__, [shares.root, *way(claimant)]):
        would_hold = added(shares.usage(path), more)
        parts = [Fraction(amount, totals[name] or amount or 1) for name, amount in would_hold.items()]
        if max(parts, default=Fraction(0)) > exact(limits[path]):
            return Limit(path, float(limits[path]), float(max(parts)))
    for path, remaining in shares.bounds(claimant)[1:]:
        for name, amount in more.items():
            if amount and amount > remaining[name]:
                used = shares.usage(path)[name]
                return Limit(path, used + remaining[name], used + amount, name)
    return None


@dataclass(frozen=True, slots=True)
class Shortage:
    """How much of a class is free, and by how much others fall short of their entitlements together."""

    free: int
    lacking: float


@dataclass(frozen=True, slots=True)
class Overdraft:
    """A node that holds more than its ``allowance``: its limit; with a ``shortage``, its entitlement rounded up."""

    path: str
    resource_class: str
    holds: int
    allowance: int
    shortage: Shortage | None = None


def overdraft(shares: FairShares, taken: Mapping[str, Amounts]) -> Overdraft | None:
    """Return the first node that now holds too much because of what was just taken; None if all is fair.

    Whoever takes may hold its entitlement, rounded up to whole units, and so may each queue around it. Beyond that it
    borrows, which is fine as long as what is left covers what all others lack of their entitlements, and if it comes
    before all others even with all but the last unit of what it took. A limit may never be exceeded. ``shares``
    includes what was taken; ``taken`` has the change in each leaf's usage, negative where it gave back.

    >>> from placement.allocators.fair_share.tree import Branch, Leaf
    >>> root = Branch("root", (Leaf("ann"), Leaf("bob")))
    >>> shares = FairShares(root, {"gpu": 10}, usage={"root/ann": {"gpu": 6}, "root/bob": {"gpu": 2}})
    >>> excess = overdraft(shares, {"root/ann": {"gpu": 1}})
    >>> excess.path, excess.holds, excess.allowance, excess.shortage
    ('root/ann', 6, 5, Shortage(free=2, lacking=3.0))
    """
    excess = beyond_entitlement(shares, taken)
    if excess is None or excess.shortage is None or not _comes_first(shares, taken, excess.path):
        return excess
    return None


def beyond_entitlement(shares: FairShares, taken: Mapping[str, Amounts]) -> Overdraft | None:
    """Return the same without regard to who comes first."""
    grown = {
        (path, name): shares.usage(path)[name]
        for leaf, amounts in taken.items()
        for path in way(leaf)
        for name, amount in amounts.items()
        if amount > 0
    }
    grown = dict(sorted(grown.items(), key=lambda item: (item[0][0].count(SEPARATOR), item)))
    remaining_in = {path: free for leaf in taken for path, free in shares.bounds(leaf)[1:]}
    for (path, name), holds in grown.items():
        if path in remaining_in and remaining_in[path][name] < 0:
            return Overdraft(path, name, holds, holds + remaining_in[path][name])
    entitlements = shares.entitlements(sorted({name for _path, name in grown}), more=_given_back(taken))
    for (path, name), holds in grown.items():
        allowance = ceil(entitlements.amounts(path)[name])
        if holds > allowance:
            other_leaves = [leaf for leaf in shares.leaves() if taken.get(leaf, {}).get(name, 0) <= 0]
            missing = [entitlements.amounts(leaf)[name] - shares.usage(leaf)[name] for leaf in other_leaves]
            free, lacking = shares.free()[name], sum([amount for amount in missing if amount > 0], Fraction(0))
            if free < lacking:
                return Overdraft(path, name, holds, allowance, Shortage(free, float(lacking)))
    return None


def _given_back(taken: Mapping[str, Amounts]) -> dict[str, Amounts]:
    """Return what leaves gave back: they may want it again."""
    return {leaf: {name: -n for name, n in amounts.items() if n < 0} for leaf, amounts in taken.items()}


def _comes_first(shares: FairShares, taken: Mapping[str, Amounts], path: str) -> bool:
    """Tell whether all leaves below a node that took something would be next without the last unit of it."""
    given_back = _given_back(taken)
    with shares.restored():
        for leaf in shares.leaves():
            holds = added(shares.usage(leaf), given_back.get(leaf, {}))
            shares.want(leaf, {name: 1 for name, amount in holds.items() if amount})
        for leaf in [leaf for leaf in taken if f"{leaf}/".startswith(f"{path}/")]:
            unit = {name: 1 for name, amount in taken[leaf].items() if amount > 0}
            if not unit:
                continue
            with shares.restored():
                shares.use(leaf, added(shares.usage(leaf), dict.fromkeys(unit, -1)))
                shares.want(leaf, unit)
                if shares.first() != leaf:
                    return False
        return True


def is_next(shares: FairShares, leaf: str, tasks: Mapping[str, Amounts]) -> bool:
    """Tell whether a leaf is served next if these leaves wait for these tasks, and others for nothing."""
    with shares.restored():
        want(shares, tasks)
        return shares.first() == leaf
