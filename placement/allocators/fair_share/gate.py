"""The gate for claims: whether taking something is fair.

``decide`` is for claims while others wait for the same. ``overdraft`` is for when nobody says who waits: all are
assumed to want more of what they use, and what the taker holds is compared with what it is entitled to
(``entitlement``). What nobody is entitled to may be borrowed.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import Literal

from placement.allocators.entries import Number, exact
from placement.allocators.fair_share.entitlement import Entitlements, lacking_for
from placement.allocators.fair_share.fill import MAX_STEPS, Behind, Filling, Task, added, fill, order, want
from placement.allocators.fair_share.state import NO_LIMIT, FairShares
from placement.allocators.fair_share.tree import SEPARATOR, Amounts, branches_of, way

GateReason = Literal["fair", "no capacity", "undecided", "others first", "over the limit"]


@dataclass(frozen=True, slots=True)
class Competitor:
    """A waiting leaf and its task."""

    leaf: str
    task: Task


@dataclass(frozen=True, slots=True)
class Limit:
    """A bound on what a queue may hold: the queue, the most it may hold, and what it would hold.

    In amounts of ``resource_class``, or as the largest fraction of any class if that is None.
    """

    path: str
    most: float
    would_hold: float
    resource_class: str | None = None


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether a claim is let through, and why.

    Args:
        reason: ``fair``: the claimant's turn comes before others need what it takes. ``no capacity``: it does not fit
            in any case, which others have to report. ``undecided``: too many wait to tell; allowed. ``others first``:
            what is free goes to others, who have less. ``over the limit``: a queue would hold too much.
        ahead: leaf -> how many of its tasks come before the claim.
        behind: the two nodes that put the first of these before the claimant.
        limit: the limit that would be exceeded.
    """

    reason: GateReason
    ahead: Mapping[str, int]
    behind: Behind | None = None
    limit: Limit | None = None

    @property
    def allowed(self) -> bool:
        """Whether the claim is let through."""
        return self.reason in ("fair", "no capacity", "undecided")


FAIR = Decision("fair", {})


def decide(
    shares: FairShares,
    claimant: str,
    task: Amounts,
    *,
    competitors: Sequence[Competitor] = (),
    limits: Mapping[str, Number] | None = None,
    steps: int = MAX_STEPS,
) -> Decision:
    """Decide whether a claim is fair.

    Progressive filling hands out what is free, task by task, to whoever is next, the claimant among them. If the
    claim's turn comes while it still fits, the claim is fair; nothing is left idle for the sake of those who could not
    use it.

    Args:
        shares: the tree and its usage. Usage is restored afterwards, pending tasks are not.
        claimant: the leaf that claims.
        task: what it claims.
        competitors: who else waits; the claimant's own entries come after the claim.
        limits: branch -> the largest fraction of any class that it may hold, 0..1; applies above the claimant.
        steps: the most tasks to hand out.

    Raises:
        ValueError, KeyError: as ``FairShares``.

    >>> from placement.allocators.fair_share.tree import Branch, Leaf
    >>> shares = FairShares(Branch("root", (Leaf("ann"), Leaf("bob"))), {"gpu": 4})
    >>> shares.use("root/ann", {"gpu": 2})
    >>> waiting = [Competitor("root/bob", Task({"gpu": 1}, 2))]
    >>> decide(shares, "root/ann", {"gpu": 1}, competitors=waiting).reason
    'others first'
    >>> decide(shares, "root/ann", {"gpu": 1}, competitors=[Competitor("root/bob", Task({"gpu": 1}, 1))]).reason
    'fair'
    """
    exceeded = _exceeded(shares, claimant, task, limits or {}) or _over_its_own(shares, claimant, task)
    if exceeded:
        return Decision("over the limit", {}, limit=exceeded)
    if lacking_for(shares, task):
        return Decision("no capacity", {})
    return _after_others(shares, claimant, _pending(claimant, Task(task), competitors), steps)


def decide_some(
    shares: FairShares,
    claims: Sequence[Competitor],
    *,
    competitors: Sequence[Competitor] = (),
    limits: Mapping[str, Number] | None = None,
    steps: int = MAX_STEPS,
) -> list[tuple[int, Decision]]:
    """Decide how many tasks of each of several claims are fair, one claim after another.

    Those that come later are among those who wait. What is let through stays in use in ``shares``.

    Args:
        shares: the tree and its usage.
        claims: who claims what; the counts are finite.
        competitors: who else waits.
        limits: as in ``decide``.
        steps: the most tasks to hand out, shared evenly among the claims.

    Returns:
        How many tasks of each claim are let through, and the decision about the next one: ``fair`` if all are.

    Raises:
        ValueError, KeyError: as ``FairShares``.

    >>> from placement.allocators.fair_share.tree import Branch, Leaf
    >>> shares = FairShares(Branch("root", (Leaf("ann"), Leaf("bob"))), {"gpu": 4})
    >>> claims, waiting = ([Competitor(leaf, Task({"gpu": 1}, 3))] for leaf in ("root/ann", "root/bob"))
    >>> ((count, next_one),) = decide_some(shares, claims, competitors=waiting)
    >>> count, next_one.reason
    (2, 'others first')
    """
    decided, steps = [], steps // max(1, len(claims))
    for number, claim in enumerate(claims, start=1):
        leaf, task = claim.leaf, claim.task
        assert task.count is not None
        waiting = [*claims[number:], *competitors]
        within = Task(task.amounts, _within_limits(shares, leaf, task, limits or {}))
        count = _in_turn(shares, leaf, _pending(leaf, within, waiting), steps)
        shares.use(leaf, added(shares.usage(leaf), _times(task.amounts, count)))
        next_one = FAIR
        if count < task.count:
            next_one = decide(shares, leaf, task.amounts, competitors=waiting, limits=limits, steps=steps)
        decided.append((task.count if next_one.allowed else count, next_one))
    return decided


def _within_limits(shares: FairShares, claimant: str, task: Task, limits: Mapping[str, Number]) -> int:
    """Return how many of some equal tasks exceed no limit."""

    def exceeds(number: int) -> bool:
        more = _times(task.amounts, number + 1)
        return bool(_exceeded(shares, claimant, more, limits) or _over_its_own(shares, claimant, more))

    return bisect_right(range(task.count or 0), 0, key=exceeds)


def _in_turn(shares: FairShares, claimant: str, pending: Mapping[str, Sequence[Task]], steps: int) -> int:
    """Return how many of a claimant's first tasks, all equal, have their turn while they fit."""
    first = pending[claimant][0]
    if not any(first.amounts.values()):
        return first.count or 0
    return _filled(shares, pending, steps).served[claimant][0]


def _times(amounts: Amounts, count: int) -> Amounts:
    return {name: amount * count for name, amount in amounts.items()}


def _pending(claimant: str, task: Task, competitors: Sequence[Competitor]) -> dict[str, list[Task]]:
    pending = {claimant: [task]}
    for one in competitors:
        pending.setdefault(one.leaf, []).append(one.task)
    return pending


def _filled(
    shares: FairShares, pending: Mapping[str, Sequence[Task]], steps: int, *, until: str | None = None
) -> Filling:
    """Return what filling would hand out; usage is restored."""
    usage = {leaf: shares.usage(leaf) for leaf in pending}
    result = fill(shares, pending, steps=steps, until=until)
    for leaf, amounts in usage.items():
        shares.use(leaf, amounts)
    return result


def _after_others(shares: FairShares, claimant: str, pending: Mapping[str, Sequence[Task]], steps: int) -> Decision:
    result = _filled(shares, pending, steps, until=claimant)
    if claimant in result.order or not any(pending[claimant][0].amounts.values()):
        return FAIR
    ahead = {leaf: sum(served) for leaf, served in result.served.items() if any(served)}
    if not result.complete:
        return Decision("undecided", ahead)
    want(shares, {leaf: tasks[0].amounts for leaf, tasks in pending.items()})
    turns = order(shares, [result.order[0], claimant])
    return Decision("others first", ahead, behind=turns[1].behind)


def _exceeded(shares: FairShares, claimant: str, task: Amounts, limits: Mapping[str, Number]) -> Limit | None:
    """Return the first limit above the claimant that the claim would exceed; None if nothing is taken."""
    if not any(task.values()):
        return None
    usage = shares.usage(claimant)
    shares.use(claimant, {name: amount + task.get(name, 0) for name, amount in usage.items()})
    passed = [claimant.partition(SEPARATOR)[0], *way(claimant)]
    would_hold = {path: shares.node(path).held for path in passed if path in limits}
    shares.use(claimant, usage)
    for path, held in would_hold.items():
        if exact(held) > exact(limits[path]):
            return Limit(path, float(limits[path]), held)
    return None


def _over_its_own(shares: FairShares, claimant: str, task: Amounts) -> Limit | None:
    """Return the first of the tree's own limits that would be exceeded."""
    for path, left in shares.bounds(claimant)[1:]:
        for name, amount in task.items():
            if amount and amount > left[name]:
                used = shares.node(path).usage[name]
                return Limit(path, used + left[name], used + amount, name)
    return None


@dataclass(frozen=True, slots=True)
class Shortage:
    """How much of a class is free, and by how much others fall short of their entitlements together."""

    left: int
    lacking: float


@dataclass(frozen=True, slots=True)
class Overdraft:
    """A node that holds more of a class than it may.

    Args:
        path: the node.
        resource_class: the class.
        holds: how much it holds.
        most: how much it may hold: its limit, or its entitlement, rounded up.
        shortage: why it may not borrow beyond its entitlement; None if it exceeds its limit.
    """

    path: str
    resource_class: str
    holds: int
    most: int
    shortage: Shortage | None = None


def overdraft(shares: FairShares, taken: Mapping[str, Amounts]) -> Overdraft | None:
    """Return the first node, from the root down, that now holds more than it may; None if there is none.

    A node may hold its entitlement, rounded up to whole units. Beyond that it borrows, which is fine as long as what is
    left covers what all others lack of their entitlements. It may never exceed its limit.

    Args:
        shares: the tree and its usage, including what was taken.
        taken: leaf -> the change in its usage; negative where it gave back.

    >>> from placement.allocators.fair_share.tree import Branch, Leaf
    >>> root = Branch("root", (Leaf("ann"), Leaf("bob")))
    >>> shares = FairShares(root, {"gpu": 10}, usage={"root/ann": {"gpu": 6}, "root/bob": {"gpu": 2}})
    >>> found = overdraft(shares, {"root/ann": {"gpu": 1}})
    >>> found.path, found.holds, found.most, found.shortage
    ('root/ann', 6, 5, Shortage(left=2, lacking=3.0))
    """
    used = shares.holdings()
    grown = [(path, name) for (path, name), amount in _by_node(taken).items() if amount > 0]
    limits = {path: branch.limit for path, branch in branches_of(shares.root)}
    for path, name in grown:
        most = limits.get(path, {}).get(name, NO_LIMIT)
        if used[path][name] > most:
            return Overdraft(path, name, used[path][name], most)
    entitlements = _if_all_want_more(shares, {name for _path, name in grown})
    for path, name in grown:
        most = ceil(entitlements.of(path)[name])
        if used[path][name] > most:
            left, lacking = (
                shares.free()[name],
                _lacking(entitlements, [leaf for leaf in shares.leaves() if leaf not in taken], name),
            )
            if left < lacking:
                return Overdraft(path, name, used[path][name], most, Shortage(left, float(lacking)))
    return None


def _by_node(taken: Mapping[str, Amounts]) -> dict[tuple[str, str], int]:
    """Return (node, class) -> the change in usage of everything below the node, outer nodes first."""
    more: Counter[tuple[str, str]] = Counter()
    for leaf, amounts in taken.items():
        for path in way(leaf):
            for name, amount in amounts.items():
                more[path, name] += amount
    return dict(sorted(more.items(), key=lambda item: (item[0][0].count(SEPARATOR), item[0])))


def _if_all_want_more(shares: FairShares, classes: Collection[str]) -> Entitlements:
    """Compute entitlements as if every leaf wanted endlessly more of whatever it uses."""
    waiting = {
        leaf: {name: NO_LIMIT for name, amount in shares.usage(leaf).items() if amount} for leaf in shares.leaves()
    }
    return Entitlements(shares, sorted(classes), waiting=waiting)


def _lacking(entitlements: Entitlements, leaves: Iterable[str], name: str) -> Fraction:
    """Sum up how far these leaves are below their entitlement to a class."""
    missing = [entitlements.of(leaf)[name] - entitlements.used[leaf][name] for leaf in leaves]
    return sum([amount for amount in missing if amount > 0], Fraction(0))
