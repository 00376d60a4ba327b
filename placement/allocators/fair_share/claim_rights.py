"""Who may give what for a claim: what has to become free, and where the paths of claimant and giver part."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from placement.allocators.fair_share.entitlement import Entitlements
from placement.allocators.fair_share.state import NO_LIMIT, FairShares
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


def lacking_for(shares: FairShares, task: Amounts) -> dict[str, int]:
    """Return how much of each class a task lacks, judged by the totals alone."""
    free = shares.free()
    return {name: amount - free[name] for name, amount in task.items() if amount and amount > free[name]}


def queue_of(leaf: str) -> str:
    """Return the path of a leaf's branch."""
    return leaf.rpartition(SEPARATOR)[0]


class ClaimRights:
    """The needs of a claim, and everybody's entitlement given that the claimant wants more.

    ``needs`` is what has to become free: (branch, class) -> amount, for the root and every limit in the way.

    Args:
        shares: the tree, its usage and what its leaves wait for.
        claimant: the leaf.
        task: what it wants.
        waiting: leaf -> everything it waits for; by default, its next task.
        classes: the classes in which entitlements are protected; by default, the lacking ones.
    """

    def __init__(
        self,
        shares: FairShares,
        claimant: str,
        task: Amounts,
        *,
        waiting: Mapping[str, Amounts] | None = None,
        classes: Iterable[str] | None = None,
    ) -> None:
        self.root = shares.root.name
        self.claimant = claimant
        self._task = task
        self.lacking = lacking_for(shares, task)
        self.needs = {
            (path, name): task[name] - left[name]
            for path, left in shares.bounds(claimant)
            for name in task
            if task[name] and task[name] > left[name]
        }
        lacking = [name for _path, name in self.needs]
        self.classes = tuple(dict.fromkeys(lacking if classes is None else classes))
        asked = {leaf: shares.wanted(leaf) for leaf in shares.leaves()} if waiting is None else dict(waiting)
        # The claimant may want more later: its entitlement must not depend on the size of a single claim.
        asked[claimant] = dict.fromkeys(self.classes, NO_LIMIT)
        self.entitlements = Entitlements(shares, self.classes, waiting=asked)
        self._may_give: dict[str, bool] = {}
        self._keepers: dict[str, tuple[str, ...]] = {}
        self._surplus: dict[str, dict[str, int]] = {}

    def parting(self, leaf: str) -> tuple[str, str] | None:
        """Return the sibling nodes at which claimant and giver part; None if the giver is the claimant itself."""
        pairs = zip(way(self.claimant), way(leaf), strict=False)
        return next(((ours, theirs) for ours, theirs in pairs if theirs != ours), None)

    def may_give(self, leaf: str) -> bool:
        """Tell whether the claimant is entitled to its claim at the level where this leaf's path parts from its own."""
        if leaf not in self._may_give:
            parting = self.parting(leaf)
            self._may_give[leaf] = parting is not None and all(
                [
                    self.entitlements.used[parting[0]][name] + self._task[name] <= amount
                    for name, amount in self.entitlements.of(parting[0]).items()
                ]
            )
        return self._may_give[leaf]

    def keepers(self, leaf: str) -> tuple[str, ...]:
        """Return the nodes that keep their entitlement when a leaf gives: from the parting down to the leaf's queue."""
        if leaf not in self._keepers:
            parting, nodes = self.parting(leaf), way(leaf)
            from_parting = nodes[nodes.index(parting[1]) :] if parting else []
            self._keepers[leaf] = tuple([path for path in from_parting if path != leaf or path == from_parting[0]])
        return self._keepers[leaf]

    def surplus(self, path: str) -> dict[str, int]:
        """Return class -> how much a node may give."""
        if path not in self._surplus:
            self._surplus[path] = self.entitlements.surplus(path)
        return self._surplus[path]

    def partings(self, leaves: Iterable[str]) -> tuple[Parting, ...]:
        """Return the levels that decide about these leaves, with their figures."""
        pairs = {self.parting(leaf) for leaf in dict.fromkeys(leaves)}
        return tuple([self._shown(*pair) for pair in sorted(filter(None, pairs))])

    def _shown(self, ours: str, theirs: str) -> Parting:
        entitlements = self.entitlements
        return Parting(
            claimant=ours,
            giver=theirs,
            claims={name: entitlements.used[ours][name] + self._task[name] for name in self.classes},
            claimant_entitled={name: float(amount) for name, amount in entitlements.of(ours).items()},
            holds={name: entitlements.used[theirs][name] for name in self.classes},
            giver_entitled={name: float(amount) for name, amount in entitlements.of(theirs).items()},
        )
