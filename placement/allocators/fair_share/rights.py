"""Who may be asked to give something back for a claim, and how much of it.

Nobody keeps less than its entitlement, nor gets more. Where the paths to the claimant and to a giver part, there are
two sibling nodes. From there down, each node on the claimant's side must be entitled to what it holds plus the task,
and each node on the giver's side keeps what it is entitled to, down to the leaves.

A claim with a *priority* may also take what is less important in the claimant's own queue, whoever is entitled to it;
of others, only what is no more important than itself.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from placement.allocators import natural_key
from placement.allocators.entries import Number, exact
from placement.allocators.fair_share.state import FairShares
from placement.allocators.fair_share.tree import SEPARATOR, Amounts, way

Need = str | tuple[int, str]
"""A class that has to be free in a place as a whole, or in a numbered part of it."""

Freed = tuple[tuple[int, str, int], ...]
"""What becomes free, sorted: the number of a provider, a class, and the amount."""


@dataclass(frozen=True, slots=True)
class Held:
    """Something that can only be given back whole.

    Args:
        leaf: who uses it.
        amounts: what it frees of the classes that count.
        value: its worth, or its priority; the least valuable goes first.
        freed: everything it frees, and where; empty if places do not matter.
        inside: how much it frees of what may be needed in a place; None if amounts fit wherever they become free.
    """

    name: str
    leaf: str
    amounts: Amounts
    value: Number = 0
    freed: Freed = ()
    inside: Mapping[Need, int] | None = None

    @property
    def worth(self) -> int | Fraction:
        """The value exactly as written, to add and compare."""
        return self.value if isinstance(self.value, int) else exact(self.value)

    @property
    def dearness(self) -> tuple[object, ...]:
        """The sort key: value, then name."""
        return self.worth, natural_key(self.leaf), natural_key(self.name)


@dataclass(frozen=True, slots=True)
class Parting:
    """Where the paths to a claimant and to a giver part: the level that decides.

    Args:
        claimant, giver: the two sibling nodes.
        claims: class -> what the claimant's node would hold with the claim.
        claimant_entitled: class -> what that node is entitled to.
        holds: class -> what the giver's node holds.
        giver_entitled: class -> what that node is entitled to.
    """

    claimant: str
    giver: str
    claims: Amounts
    claimant_entitled: Mapping[str, float]
    holds: Amounts
    giver_entitled: Mapping[str, float]


class ClaimRights:
    """The needs of a claim, and what everybody is entitled to, given that the claimant wants more.

    ``needs`` is what has to become free: (branch, class) -> amount, for the root and every limit in the way.

    Entitlements are protected in ``classes``, by default the lacking ones.
    """

    def __init__(
        self,
        shares: FairShares,
        claimant: str,
        task: Amounts,
        *,
        classes: Iterable[str] | None = None,
        priority: Number | None = None,
    ) -> None:
        self.root = shares.root
        self.claimant = claimant
        self.task = task
        self.priority = priority
        self.needs = {
            (path, name): task[name] - free[name]
            for path, free in shares.bounds(claimant)
            for name in task
            if task[name] and task[name] > free[name]
        }
        self.lacking = {name: amount for (path, name), amount in self.needs.items() if path == self.root}
        needed = [name for _path, name in self.needs] if classes is None else classes
        self.classes = tuple(dict.fromkeys(needed))
        self._shares = shares
        self._entitlements = shares.entitlements(self.classes, more={claimant: task})
        self._surplus: dict[str, tuple[int, ...]] = {}
        self._keepers: dict[str, tuple[str, ...]] = {}
        self._may_give: dict[str, bool] = {}
        self._queue = queue_of(claimant)

    def keepers(self, leaf: str) -> tuple[str, ...]:
        """Return the nodes that keep their entitlement when a leaf gives: from the parting down to the leaf."""
        if leaf not in self._keepers:
            claimant_path = {self.root, *way(self.claimant)}
            self._keepers[leaf] = tuple([path for path in way(leaf) if path not in claimant_path])
        return self._keepers[leaf]

    def may_ask(self, leaf: str, value: Number) -> bool:
        """Tell whether something of a leaf, worth this much, may go for the claim, entitlements of others permitting.

        The claimant must be entitled to its claim from the parting from the leaf's path down to itself.
        """
        if leaf not in self._may_give:
            keepers = self.keepers(leaf)
            self._may_give[leaf] = bool(keepers) and keepers[0].count(SEPARATOR) > self._first_entitled
        if self.priority is None or value > self.priority:
            return self.priority is None and self._may_give[leaf]
        return self._may_give[leaf] or self.is_free(leaf, value)

    def is_free(self, leaf: str, value: Number) -> bool:
        """Tell whether something may go whatever its owner is entitled to: it is less important, in the same queue."""
        return self.priority is not None and value < self.priority and queue_of(leaf) == self._queue

    @cached_property
    def _first_entitled(self) -> int:
        """The first of the claimant's nodes from which on all are entitled to what they would hold."""
        beyond = [
            number
            for number, path in enumerate(way(self.claimant), start=1)
            for name, amount in self._with_claim(path).items()
            if amount > self._entitlements.amounts(path)[name]
        ]
        return max(beyond, default=0)

    def _with_claim(self, path: str) -> dict[str, int]:
        used = self._shares.usage(path)
        return {name: used[name] + self.task.get(name, 0) for name in self.classes}

    def surplus(self, path: str) -> tuple[int, ...]:
        """Return, by class, how many whole units a node may give."""
        if path not in self._surplus:
            entitled, used = self._entitlements.amounts(path), self._shares.usage(path)
            self._surplus[path] = tuple([max(0, int(used[name] - entitled[name])) for name in self.classes])
        return self._surplus[path]

    def partings(self, leaves: Iterable[str]) -> tuple[Parting, ...]:
        """Return the levels that decide about these leaves, with their figures."""
        givers = {self.keepers(leaf)[0] for leaf in dict.fromkeys(leaves) if self.keepers(leaf)}
        return tuple([self._parting(giver) for giver in sorted(givers)])

    def _parting(self, giver: str) -> Parting:
        claimant, used = way(self.claimant)[len(way(giver)) - 1], self._shares.usage(giver)
        entitled = [
            {name: float(amount) for name, amount in self._entitlements.amounts(path).items()}
            for path in (claimant, giver)
        ]
        holds = {name: used[name] for name in self.classes}
        return Parting(claimant, giver, self._with_claim(claimant), entitled[0], holds, entitled[1])


def queue_of(leaf: str) -> str:
    """Return the path of a leaf's branch."""
    return leaf.rpartition(SEPARATOR)[0]
