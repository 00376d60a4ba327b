"""Provider trees as they are at one moment, and the score of what a request takes from one of them.

The node of a request is the tree it takes from. What a provider of another tree shares with it is not the node's, even
if it is asked for. What takes from sharing providers alone has no node, and is judged as on one that has nothing.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from placement.allocators.compactness import Position, counted
from placement.allocators.ranking_profile import RankingProfile
from placement.allocators.strategy_fit import Node
from placement.candidates.scores import Score, score

Amounts = Mapping[str, int]
"""Resource class -> amount."""

Taken = Mapping[int, Amounts]
"""Provider -> what is taken from it."""


class Member(NamedTuple):
    """A provider of a tree: what it has and uses, by class, what it is, and whether other trees share it."""

    root: int
    parent: int | None
    capacities: Amounts
    used: Amounts
    traits: frozenset[str]
    shares: bool


class Forest:
    """Whole provider trees, and what counts in them.

    Args:
        members: the providers of the trees, by id.
        profile: what is best.
        levels: the traits of the levels that count for compactness, outermost first.
    """

    def __init__(self, members: Mapping[int, Member], profile: RankingProfile, levels: Sequence[str]) -> None:
        self._members = members
        self._profile = profile
        self._levels = levels
        self._by_root: dict[int, list[Member]] = defaultdict(list)
        for member in members.values():
            self._by_root[member.root].append(member)
        self._nodes: dict[int, Node] = {}
        self._positions: dict[int, Position] = {}
        self._scores: dict[tuple[object, ...], Score] = {}

    def roots(self, taken: Taken) -> set[int]:
        """Return the trees that something is taken from, but for providers that share with other trees."""
        members = [self._members[provider] for provider in taken]
        return {member.root for member in members if not member.shares}

    def has_room(self, taken: Taken) -> bool:
        """Tell whether every provider has room for what is taken from it."""
        return all(
            amount <= member.capacities.get(name, 0) - member.used.get(name, 0)
            for member, amounts in ((self._members[provider], amounts) for provider, amounts in taken.items())
            for name, amount in amounts.items()
        )

    def score(self, taken: Taken) -> Score:
        """Return the score of what is taken from one tree, and perhaps from providers that share with it.

        Most candidates of one tree are alike, so what was worked out is kept.
        """
        root = next(iter(self.roots(taken)), None)
        own = [provider for provider in taken if self._members[provider].root == root]
        requested: Counter[str] = Counter()
        for amounts in taken.values():
            requested.update(amounts)
        counts = counted(map(self._position, own), len(self._levels))
        alike = (root, counts, frozenset(requested.items()))
        if alike not in self._scores:
            node = Node({}) if root is None else self._node(root)
            self._scores[alike] = score(self._profile, requested, node, counts=counts)
        return self._scores[alike]

    def _node(self, root: int) -> Node:
        """Return what a tree has and uses, summed over its providers."""
        if root not in self._nodes:
            capacities: Counter[str] = Counter()
            used: Counter[str] = Counter()
            for member in self._by_root[root]:
                capacities.update(member.capacities)
                used.update(member.used)
            self._nodes[root] = Node(capacities, used)
        return self._nodes[root]

    def _position(self, provider: int) -> Position:
        """Return the place of each level that a provider lies in: the nearest, from itself upwards."""
        if provider not in self._positions:
            above = self._upwards(provider)
            self._positions[provider] = [
                next((place for place in above if trait in self._members[place].traits), None) for trait in self._levels
            ]
        return self._positions[provider]

    def _upwards(self, provider: int) -> list[int]:
        found, here = [], provider
        while (parent := self._members[here].parent) is not None:
            found.append(here)
            here = parent
        return [*found, here]
