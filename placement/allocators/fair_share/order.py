"""The order in which waiting leaves are served, and what puts each one behind its predecessor."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from placement.allocators.fair_share.state import FairShares, NodeShare
from placement.allocators.fair_share.tree import way

Reason = Literal["blocked", "share", "name"]


@dataclass(frozen=True, slots=True)
class Behind:
    """Why a leaf comes after another.

    Args:
        reason: ``blocked``: the leaf's side cannot be served while the other can; ``share``: its weighted share is
            larger; ``name``: all shares are equal.
        node, other: the nodes that decide: siblings on the two leaves' paths (or cousins, below branches whose shares
            are equal), or the leaves themselves.
    """

    reason: Reason
    node: NodeShare
    other: NodeShare


@dataclass(frozen=True, slots=True)
class Turn:
    """A leaf's position in the order of service; ``behind`` is None for the first."""

    leaf: NodeShare
    behind: Behind | None


def order(shares: FairShares, leaves: Iterable[str]) -> list[Turn]:
    """Sort leaves in the order they would be served now, with the reason for each position.

    Two leaves are compared from the top of the tree down. At each level an unblocked node precedes a blocked one, then
    the smaller weighted share wins; equal shares move on to the next level. The final tie-break is the position in the
    tree, which follows the natural order of names.

    Raises:
        KeyError: a leaf is not in the tree.

    >>> from placement.allocators.fair_share.tree import Branch, Leaf
    >>> shares = FairShares(Branch("root", (Leaf("a"), Leaf("b"))), {"cpu": 10})
    >>> for leaf in ("root/a", "root/b"):
    ...     shares.want(leaf, {"cpu": 1})
    >>> shares.use("root/a", {"cpu": 1})
    >>> [(turn.leaf.path, turn.behind and turn.behind.reason) for turn in order(shares, ["root/a", "root/b"])]
    [('root/b', None), ('root/a', 'share')]
    """
    ranked = sorted(leaves, key=shares.rank)
    behind = [None, *[_behind(shares, leaf, before) for before, leaf in pairwise(ranked)]]
    return [Turn(shares.node(leaf), reason) for leaf, reason in zip(ranked, behind, strict=False)]


def _behind(shares: FairShares, leaf: str, before: str) -> Behind:
    ways = list(zip(way(leaf), way(before), strict=False))
    levels = list(zip(shares.rank(leaf)[0], shares.rank(before)[0], strict=False))
    parted = next((number for number, (own, other) in enumerate(levels) if own != other), None)
    node, other = (shares.node(path) for path in ways[len(ways) - 1 if parted is None else parted])
    if parted is None:
        return Behind("name", node, other)
    return Behind("blocked" if node.is_blocked and not other.is_blocked else "share", node, other)
