"""Who may be asked to give something back for a claim, and how much of it.

Nobody keeps less than its entitlement, nor gets more. Where the paths to the claimant and to a giver part, there are
two sibling nodes. From there down, each node on the claimant's side must be entitled to what it holds plus the task,
and each node on the giver's side keeps what it is entitled to. A claim with a *priority* may also take what is less
important in the claimant's own queue, whoever is entitled to it; of others, only what is no more important than itself.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property

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
    """Where the paths to a claimant and to a giver part, the level that decides: by class what the two nodes hold.

    The claimant's node holds that with its claim. Beside it is what each of the two is entitled to.
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
        self._claimant_path = frozenset(way(claimant))
        self._queue = queue_of(claimant)
        self.keepers, self.surplus, self._may_give = cache(self._kept), cache(self._spare), cache(self._gives)

    def _kept(self, leaf: str) -> tuple[str, ...]:
        """Return the nodes that keep their entitlement when a leaf gives: from the parting down to the leaf."""
        return tuple([path for path in way(leaf) if path not in self._claimant_path])

    def may_ask(self, leaf: str, value: Number) -> bool:
        """Tell whether something of a leaf, worth this much, may go, as far as the claimant is entitled to it."""
        if self.priority is None or value > self.priority:
            return self.priority is None and self._may_give(leaf)
        return self._may_give(leaf) or self.is_free(leaf, value)

    def _gives(self, leaf: str) -> bool:
        keepers = self.keepers(leaf)
        return bool(keepers) and keepers[0].count(SEPARATOR) > self._first_entitled

    def is_free(self, leaf: str, value: Number) -> bool:
        """Tell whether something may go whatever its owner is entitled to: less important, in the same queue."""
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

    def _spare(self, path: str) -> tuple[int, ...]:
        """Return, by class, how many whole units a node may give."""
        entitled, used = self._entitlements.amounts(path), self._shares.usage(path)
        return tuple([max(0, int(used[name] - entitled[name])) for name in self.classes])

    def partings(self, leaves: Iterable[str]) -> tuple[Parting, ...]:
        """Return the levels that decide about these leaves, with their figures."""
        partings = []
        for giver in sorted({self.keepers(leaf)[0] for leaf in dict.fromkeys(leaves) if self.keepers(leaf)}):
            claimant, used = way(self.claimant)[len(way(giver)) - 1], self._shares.usage(giver)
            entitled = [
                {name: float(amount) for name, amount in self._entitlements.amounts(path).items()}
                for path in (claimant, giver)
            ]
            holds = {name: used[name] for name in self.classes}
            partings.append(Parting(claimant, giver, self._with_claim(claimant), entitled[0], holds, entitled[1]))
        return tuple(partings)


def queue_of(leaf: str) -> str:
    """Return the path of a leaf's branch."""
    return leaf.rpartition(SEPARATOR)[0]
