"""Whether what somebody takes is theirs, when nobody says who waits: all are assumed to want more of what they use.

``gate`` fills what is free with known tasks. Here none are known, so what the taker holds is compared with what it is
entitled to (``entitlement``). What nobody is entitled to may be borrowed.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import ceil

from placement.allocators.fair_share.entitlement import Entitlements
from placement.allocators.fair_share.state import NO_LIMIT, FairShares
from placement.allocators.fair_share.tree import SEPARATOR, Amounts, branches_of, way


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
