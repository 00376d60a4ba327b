"""Provider trees at one moment, and the score of what a request takes from one of them.

A request is scored on one node: the tree it takes from. What providers of other trees share with it is neither part of
the node nor charged to it, even if it is requested. What sharing providers serve alone is taken from their own trees,
which together are the node.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from placement.allocators.ranking_profile import RankingProfile
from placement.candidates.device_judge import DeviceJudge
from placement.candidates.scores import CandidateScorer, Score
from placement.domain.quantities import ResourceAmounts, summed

Taken = Mapping[int, ResourceAmounts]
"""Provider -> the amounts taken from it."""

NearestPlaces = tuple[int | None, ...]
"""The place of a provider at each level, outermost first, by the provider it is named after; None if in none."""


class Member(NamedTuple):
    """A provider of a tree: what it has left of each class, its traits, and whether it shares with other trees."""

    root: int
    parent: int | None
    left: ResourceAmounts
    traits: frozenset[str]
    shares: bool


class ForestSums(NamedTuple):
    """What whole trees have and use.

    Args:
        classes: the names of the classes.
        of_root: for each tree, by its root, the capacity and then the usage of each of the classes.
    """

    classes: tuple[str, ...]
    of_root: Mapping[int, tuple[int, ...]]

    @classmethod
    def of_members(cls, members: Iterable[tuple[int, ResourceAmounts, ResourceAmounts]]) -> "ForestSums":
        """Add up the providers of trees: for each its root, its capacities and its usage."""
        capacities: dict[int, list[ResourceAmounts]] = defaultdict(list)
        used: dict[int, list[ResourceAmounts]] = defaultdict(list)
        for root, has, uses in members:
            capacities[root].append(has)
            used[root].append(uses)
        names = tuple(sorted({name for lists in capacities.values() for has in lists for name in has}))
        both = {root: (summed(capacities[root]), summed(used[root])) for root in capacities}
        rows = {root: tuple([of.get(name, 0) for of in pair for name in names]) for root, pair in both.items()}
        return cls(names, rows)


class Forest:
    """Provider trees, and the scores of what is taken from them.

    Args:
        members: by id, the providers that anything is taken from, and all above them; for a judge, the whole trees.
        sums: what the trees have and use.
        profile: what makes a candidate good.
        levels: the traits of the levels that compactness counts, outermost first.
        judge: judges devices, if the profile counts fragmentation.
    """

    def __init__(
        self,
        members: Mapping[int, Member],
        sums: ForestSums,
        profile: RankingProfile,
        *,
        levels: Sequence[str],
        judge: DeviceJudge | None = None,
    ) -> None:
        self._judge = judge
        self.members = members
        self._sums = sums
        self._profile = profile
        self._levels = levels
        self._nowhere: NearestPlaces = (None,) * len(levels)
        self._anchors: dict[int, NearestPlaces] = {}
        self._scorers: dict[tuple[object, ...], _ScorerOfAmounts] = {}

    def roots(self, taken: Taken) -> set[int]:
        """Return the roots of the trees that something is taken from, sharing providers aside."""
        members = [self.members[provider] for provider in taken]
        return {member.root for member in members if not member.shares}

    def has_room(self, taken: Taken) -> bool:
        """Tell whether every provider has room for what is taken from it."""
        return all(
            [
                amount <= self.members[provider].left.get(name, 0)
                for provider, amounts in taken.items()
                for name, amount in amounts.items()
            ]
        )

    def score(self, taken: Taken) -> Score:
        """Return the score of what is taken from one tree and, perhaps, from providers that share with it."""
        members = self.members
        root = next((members[provider].root for provider in taken if not members[provider].shares), None)
        if root is None:
            return self._score_of_pools(taken)
        own = [provider for provider in taken if members[provider].root == root]
        scorer = self._scorer([*taken.values()], [taken[provider] for provider in own])
        touched = self._touched(own)
        if self._judge is None:
            return scorer.score(self._sums.of_root.get(root, ()), touched)
        tidy = self._judge.score(self._left_of_trees[root], {provider: taken[provider] for provider in own})
        return scorer.score(self._sums.of_root.get(root, ()), touched, tidy)

    def _score_of_pools(self, taken: Taken) -> Score:
        """Return the score of what is taken from sharing providers alone: of their trees as one node, at no place."""
        amounts = [*taken.values()]
        of_trees = [self._sums.of_root.get(root, ()) for root in {self.members[provider].root for provider in taken}]
        together = tuple([sum(column) for column in zip(*filter(None, of_trees), strict=True)])
        return self._scorer(amounts, amounts).score(together, (0,) * len(self._levels))

    def _scorer(self, amounts: Sequence[ResourceAmounts], own: Sequence[ResourceAmounts]) -> "_ScorerOfAmounts":
        """Return the scorer of these amounts, of which a tree itself gives some; most candidates want the same."""
        alike: tuple[object, ...] = tuple([tuple(of.items()) for of in amounts])
        if len(own) < len(amounts):
            alike = alike, tuple([tuple(of.items()) for of in own])
        scorer = self._scorers.get(alike)
        if scorer is None:
            known = self._sums.classes
            compiled = CandidateScorer(self._profile, summed(amounts), summed(own), known)
            at = [known.index(name) if name in known else None for name in compiled.classes]
            scorer = self._scorers[alike] = _ScorerOfAmounts(compiled, at, len(known))
        return scorer

    def _touched(self, providers: Sequence[int]) -> tuple[int, ...]:
        """Count the places of each level that providers of a tree lie in."""
        if len(providers) == 1:
            return tuple([int(anchor is not None) for anchor in self._anchors_of(providers[0])])
        by_level = zip(*map(self._anchors_of, providers), strict=True)
        return tuple([len({*anchors} - {None}) for anchors in by_level])

    def _anchors_of(self, provider: int) -> NearestPlaces:
        """Return the nearest place of each level at or above a provider."""
        anchors = self._anchors.get(provider)
        if anchors is None:
            member = self.members[provider]
            anchors = self._nowhere if member.parent is None else self._anchors_of(member.parent)
            if not member.traits.isdisjoint(self._levels):
                levels = zip(self._levels, anchors, strict=True)
                anchors = tuple([provider if trait in member.traits else above for trait, above in levels])
            self._anchors[provider] = anchors
        return anchors

    @cached_property
    def _left_of_trees(self) -> Mapping[int, dict[int, ResourceAmounts]]:
        """Root -> provider -> what it has left."""
        left: dict[int, dict[int, ResourceAmounts]] = defaultdict(dict)
        for provider, member in self.members.items():
            left[member.root][provider] = member.left
        return left


class _ScorerOfAmounts:
    """A scorer that takes the sums of a tree as they were read. Many hosts of a cloud have the same.

    Args:
        scorer: the scorer.
        at: where each of its classes is among those of the sums; None if it is not.
        classes: how many classes the sums have.
    """

    def __init__(self, scorer: CandidateScorer, at: Sequence[int | None], classes: int) -> None:
        self._scorer = scorer
        self._at = at
        self._classes = classes
        self._scores: dict[tuple[object, ...], Score] = {}

    def score(self, sums: tuple[int, ...], touched: tuple[int, ...], fragmentation: float | None = None) -> Score:
        """Return the score; a tree without sums has nothing."""
        alike = sums, touched, fragmentation
        known = self._scores.get(alike)
        if known is None:
            places = self._at if sums else [None] * len(self._at)
            capacities = [0 if place is None else sums[place] for place in places]
            used = [0 if place is None else sums[place + self._classes] for place in places]
            known = self._scores[alike] = self._scorer.score(capacities, used, touched, fragmentation)
        return known
