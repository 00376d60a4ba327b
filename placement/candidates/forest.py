"""Provider trees at one moment, and the score of what a request takes from one of them.

A request is scored on one node: the tree it takes from. What providers of other trees share with it is neither part of
the node nor charged to it, even if it is requested. What sharing providers serve alone is taken from their own trees,
which together are the node.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from placement.allocators.ranking_profile import RankingProfile
from placement.allocators.strategy_fit import ScoredNode
from placement.candidates.device_judge import DeviceJudge
from placement.candidates.scores import Score, score, score_of_pools
from placement.domain.amounts import ResourceAmounts, summed
from placement.domain.places import Layout, Places, level_bits

Taken = Mapping[int, ResourceAmounts]
"""Provider -> the amounts taken from it."""


class Member(NamedTuple):
    """A provider of a tree: its capacities and usage by class, its traits, and whether it shares with other trees."""

    root: int
    parent: int | None
    capacities: ResourceAmounts
    used: ResourceAmounts
    traits: frozenset[str]
    shares: bool


class Forest:
    """Whole provider trees, and the scores of what is taken from them.

    Args:
        members: the providers of the trees, by id.
        profile: what makes a candidate good.
        levels: the traits of the levels that compactness counts, outermost first.
        judge: judges devices, if the profile counts fragmentation.
    """

    def __init__(
        self,
        members: Mapping[int, Member],
        profile: RankingProfile,
        levels: Sequence[str],
        judge: DeviceJudge | None = None,
    ) -> None:
        self._judge = judge
        self._members = members
        self._profile = profile
        self._levels = levels
        self._by_root: dict[int, list[Member]] = defaultdict(list)
        for member in members.values():
            self._by_root[member.root].append(member)
        self._nodes: dict[int, ScoredNode] = {}
        self._scores: dict[tuple[object, ...], Score] = {}

    def roots(self, taken: Taken) -> set[int]:
        """Return the roots of the trees that something is taken from, sharing providers aside."""
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
        """Return the score of what is taken from one tree and, perhaps, from providers that share with it.

        Scores are memoised, because most candidates of a tree have the same.
        """
        root = next(iter(self.roots(taken)), None)
        if root is None:
            return self._score_of_pools(taken)
        own = [provider for provider in taken if self._members[provider].root == root]
        requested, given = summed(taken.values()), summed([taken[provider] for provider in own])
        touched = self._places.touched(self._places.around(own))
        devices = frozenset(own) if self._judge else None
        alike = (root, touched, frozenset(requested.items()), frozenset(given.items()), devices)
        if alike not in self._scores:
            tidy = self._fragmentation(root, {provider: taken[provider] for provider in own})
            self._scores[alike] = score(
                self._profile, requested, self._node(root), own=given, touched=touched, fragmentation=tidy
            )
        return self._scores[alike]

    def _score_of_pools(self, taken: Taken) -> Score:
        """Return the score of what is taken from sharing providers alone: of their trees as one node, at no place."""
        requested, roots = summed(taken.values()), {self._members[provider].root for provider in taken}
        return score_of_pools(self._profile, requested, [self._node(root) for root in roots], levels=len(self._levels))

    def _fragmentation(self, root: int, taken: Taken) -> float | None:
        if self._judge is None:
            return None
        left = {
            provider: {name: amount - member.used.get(name, 0) for name, amount in member.capacities.items()}
            for provider, member in self._members.items()
            if member.root == root
        }
        return self._judge.score(left, taken)

    def _node(self, root: int) -> ScoredNode:
        """Return a tree's total capacities and usage."""
        if root not in self._nodes:
            members = self._by_root[root]
            self._nodes[root] = ScoredNode(summed([m.capacities for m in members]), summed([m.used for m in members]))
        return self._nodes[root]

    @cached_property
    def _places(self) -> Places:
        """Where the providers lie: for each level the nearest place at or above them."""
        parents = {provider: member.parent for provider, member in self._members.items()}
        bits = {provider: level_bits(member.traits, self._levels) for provider, member in self._members.items()}
        anchors = {provider: found for provider, found in bits.items() if found}
        root_of = {provider: self._members[provider].root for provider in anchors}
        layout = Layout(parents, anchors, root_of, levels=len(self._levels))
        return Places(layout.masks_of(layout.inside(parents.keys())), layout.levels)
