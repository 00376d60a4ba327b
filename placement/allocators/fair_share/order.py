"""The order in which waiting leaves are served, and progressive filling: serving them until nothing fits."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, repeat
from typing import Literal

from placement.allocators.fair_share.state import FairShares, NodeShare
from placement.allocators.fair_share.tree import Amounts, way

Reason = Literal["blocked", "share", "name"]


@dataclass(frozen=True, slots=True)
class Behind:
    """Why a leaf comes after another.

    Args:
        reason: ``blocked``: only the other's side can be served; ``share``: its weighted share is larger; ``name``: all
            shares are equal.
        node, rival: the nodes that decide: siblings on the two leaves' paths (or cousins, below branches whose shares
            are equal), or the leaves themselves.
    """

    reason: Reason
    node: NodeShare
    rival: NodeShare


@dataclass(frozen=True, slots=True)
class Turn:
    """A leaf's position in the order of service; ``behind`` is None for the first."""

    leaf: NodeShare
    behind: Behind | None


def order(shares: FairShares, leaves: Iterable[str]) -> list[Turn]:
    """Sort leaves in the order they would be served now, with the reason for each position.

    Two leaves are compared from the top of the tree down. At each level an unblocked node precedes a blocked one, then
    the smaller weighted share wins; equal shares move on to the next level. The final tie-break is the position in the
    tree, which follows the natural order of names. KeyError if a leaf is not in the tree.
    """
    ranked = sorted(leaves, key=shares.rank)
    behind = [None, *[_behind(shares, leaf, before) for before, leaf in pairwise(ranked)]]
    return [Turn(shares.node(leaf), reason) for leaf, reason in zip(ranked, behind, strict=False)]


def _behind(shares: FairShares, leaf: str, before: str) -> Behind:
    """Return why a leaf comes after another, at the first level where their ways differ."""
    ways = list(zip(way(leaf), way(before), strict=False))
    levels = list(zip(shares.rank(leaf)[0], shares.rank(before)[0], strict=False))
    parted = next((number for number, (level, level_before) in enumerate(levels) if level != level_before), None)
    node, before_node = (shares.node(path) for path in ways[len(ways) - 1 if parted is None else parted])
    if parted is None:
        return Behind("name", node, before_node)
    return Behind("blocked" if node.is_blocked and not before_node.is_blocked else "share", node, before_node)


MAX_STEPS = 10_000
"""The default for how many tasks to hand out at most."""


@dataclass(frozen=True, slots=True)
class Task:
    """What a leaf waits for: the same amounts ``count`` times, or endlessly if it is None."""

    amounts: Amounts
    count: int | None = 1


@dataclass(frozen=True, slots=True)
class Filling:
    """The outcome of filling.

    Args:
        served: leaf -> how many tasks it got from each of its entries, in their order.
        granted: leaf -> the sum of those tasks.
        order: the leaf served at each turn.
        complete: False if the steps ran out while tasks still fitted.
    """

    served: Mapping[str, tuple[int, ...]]
    granted: Mapping[str, Amounts]
    order: tuple[str, ...]
    complete: bool


def fill(
    shares: FairShares, pending: Mapping[str, Sequence[Task]], *, steps: int = MAX_STEPS, until: str | None = None
) -> Filling:
    """Hand out pending tasks to whoever is next, as long as one fits. Leaves ``shares`` in the final state.

    A leaf's entries are served in order: one that does not fit holds up those behind it. Leaves that are not named wait
    for nothing. Stops after so many tasks, or once the leaf ``until`` has its first entry. Raises as ``FairShares``.

    >>> from placement.allocators.fair_share.tree import Branch, Leaf  # dominant resources, HD-01
    >>> shares = FairShares(Branch("root", (Leaf("a"), Leaf("b"))), {"cpu": 9, "memory": 18})
    >>> tasks = {"root/a": [Task({"cpu": 1, "memory": 4}, None)], "root/b": [Task({"cpu": 3, "memory": 1}, None)]}
    >>> fill(shares, tasks).granted
    {'root/a': {'cpu': 3, 'memory': 12}, 'root/b': {'cpu': 6, 'memory': 2}}
    """
    turns = {leaf: _turns(tasks) for leaf, tasks in pending.items()}
    heads = {leaf: next(tasks, None) for leaf, tasks in turns.items()}
    served = {leaf: [0] * len(tasks) for leaf, tasks in pending.items()}
    before = {leaf: shares.usage(leaf) for leaf in pending}
    want(shares, {leaf: head[1] for leaf, head in heads.items() if head})
    order: list[str] = []
    while len(order) < steps and (leaf := shares.first()) is not None:
        if until and ((head := heads[until]) is None or head[0]):
            break
        head = heads[leaf]
        assert head is not None  # whoever waits for nothing is blocked
        served[leaf][head[0]] += 1
        shares.use(leaf, added(shares.usage(leaf), head[1]))
        heads[leaf] = following = next(turns[leaf], None)
        shares.want(leaf, following[1] if following else {})
        order.append(leaf)
    return Filling(
        served={leaf: tuple(counts) for leaf, counts in served.items()},
        granted={leaf: {n: amount - before[leaf][n] for n, amount in shares.usage(leaf).items()} for leaf in pending},
        order=tuple(order),
        complete=shares.first() is None,
    )


def _turns(tasks: Iterable[Task]) -> Iterator[tuple[int, Amounts]]:
    """Yield the tasks of a leaf one by one, each with the number of its entry."""
    for number, task in enumerate(tasks):
        if any(task.amounts.values()):
            turn = number, task.amounts
            yield from repeat(turn) if task.count is None else repeat(turn, task.count)


def want(shares: FairShares, tasks: Mapping[str, Amounts]) -> None:
    """Make these leaves wait for these tasks, and all others for nothing."""
    for leaf in shares.leaves():
        shares.want(leaf, tasks.get(leaf, {}))


def added(amounts: Amounts, more: Amounts) -> dict[str, int]:
    """Add amounts class by class."""
    return {name: amounts.get(name, 0) + more.get(name, 0) for name in [*amounts, *(more.keys() - amounts.keys())]}
