"""Who may give what for a claim: nobody keeps less than its entitlement, nor gets more."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from placement.allocators.fair_share.state import FairShares
from placement.allocators.fair_share.tree import SEPARATOR, Amounts, way


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

    Args:
        shares: the tree, its usage and what its leaves wait for.
        claimant: the leaf.
        task: what it wants.
        classes: the classes in which entitlements are protected; by default, the lacking ones.
    """

    def __init__(
        self, shares: FairShares, claimant: str, task: Amounts, *, classes: Iterable[str] | None = None
    ) -> None:
        self.root = shares.root.name
        self.claimant = claimant
        self.task = task
        self.needs = {
            (path, name): task[name] - left[name]
            for path, left in shares.bounds(claimant)
            for name in task
            if task[name] and task[name] > left[name]
        }
        self.lacking = {name: amount for (path, name), amount in self.needs.items() if path == self.root}
        needed = [name for _path, name in self.needs] if classes is None else classes
        self.classes = tuple(dict.fromkeys(needed))
        self.used = shares.holdings()
        self.entitlements = shares.entitlements(self.classes, more={claimant: task})
        self._surplus: dict[str, dict[str, int]] = {}
        self._keepers: dict[str, tuple[str, ...]] = {}

    def keepers(self, leaf: str) -> tuple[str, ...]:
        """Return the nodes that keep their entitlement when a leaf gives: from the parting down to the leaf."""
        if leaf not in self._keepers:
            ours = {self.root, *way(self.claimant)}
            self._keepers[leaf] = tuple([path for path in way(leaf) if path not in ours])
        return self._keepers[leaf]

    def may_give(self, leaf: str) -> bool:
        """Tell whether the claimant is entitled to its claim, from the parting from a leaf's path down to itself."""
        keepers = self.keepers(leaf)
        return bool(keepers) and keepers[0].count(SEPARATOR) > self._first_entitled

    @cached_property
    def _first_entitled(self) -> int:
        """The first of the claimant's nodes from which on all are entitled to what they would hold."""
        nodes = way(self.claimant)
        beyond = [number for number, path in enumerate(nodes, start=1) if not self._is_entitled(path)]
        return max(beyond, default=0)

    def _is_entitled(self, path: str) -> bool:
        entitled, used = self.entitlements.of(path), self.used[path]
        return all([used[name] + self.task.get(name, 0) <= entitled[name] for name in self.classes])

    def surplus(self, path: str) -> dict[str, int]:
        """Return class -> how many whole units a node may give."""
        if path not in self._surplus:
            entitled, used = self.entitlements.of(path), self.used[path]
            self._surplus[path] = {name: max(0, int(used[name] - entitled[name])) for name in self.classes}
        return self._surplus[path]

    def partings(self, leaves: Iterable[str]) -> tuple[Parting, ...]:
        """Return the levels that decide about these leaves, with their figures."""
        givers = {self.keepers(leaf)[0] for leaf in dict.fromkeys(leaves) if self.keepers(leaf)}
        return tuple([self._shown(way(self.claimant)[len(way(giver)) - 1], giver) for giver in sorted(givers)])

    def _shown(self, ours: str, theirs: str) -> Parting:
        entitled = self.entitlements.of
        return Parting(
            claimant=ours,
            giver=theirs,
            claims={name: self.used[ours][name] + self.task.get(name, 0) for name in self.classes},
            claimant_entitled={name: float(amount) for name, amount in entitled(ours).items()},
            holds={name: self.used[theirs][name] for name in self.classes},
            giver_entitled={name: float(amount) for name, amount in entitled(theirs).items()},
        )
