"""Ranks candidates where providers share with trees: by what each takes of the tree itself, its *own part*.

Say a host has two pools to take storage from, its own disk and a shared one. A candidate with 4 VCPU and 100 GB has the
own part (4, 100) if the disk serves, and (4, 0) if the pool does. A candidate served by sharing providers alone takes
from their trees, not from the tree it was found in. Such candidates are ranked apart, grouped by the trees they take
from, however many trees they are found in.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from itertools import chain, islice
from operator import itemgetter

from placement.allocators.ranking_profile import Counts
from placement.candidates.compose.compact import CompactFirst
from placement.candidates.compose.slots import RequestBudget, SlotComposer
from placement.candidates.frontier import FAILS, Key, Keyed
from placement.candidates.ranking import OwnAmounts, TreeScores
from placement.candidates.tree_order import SumsAsRead
from placement.domain.search_plan import Choice, Plan
from placement.domain.tree import Tree

MAX_SORTED = 4_000
"""How many candidates of one tree are sorted unless all are wanted; others follow as they are found."""

RankedPart = tuple[Key, tuple[int, ...], Tree, Iterator[Choice]]
"""The key of the best candidate, a tie-break for equal keys, the tree, and its candidates."""

_RankedChoice = tuple[tuple[tuple[bool, float], Counts], Choice]
"""A candidate after its sort key: whether it breaks a proportion, its negated score, and the places it touches."""


class PooledRanking:
    """Composes in trees that others share with, and ranks the results."""

    def __init__(
        self, plan: Plan, scores: TreeScores, sums: SumsAsRead, budget: RequestBudget, *, all_wanted: bool
    ) -> None:
        self._scores = scores
        self._sums = sums
        self._budget = budget
        self._max_choices = None if all_wanted else MAX_SORTED
        self._compact_first = CompactFirst(plan, budget, all_wanted=all_wanted)
        self._composer = SlotComposer(plan, budget)
        self._taking = [
            (index, slot.demand, tuple([dict(slot.resources).get(name, 0) for name in scores.weighed]))
            for index, slot in enumerate(plan.slots)
            if slot.resources
        ]
        """The slots that take anything: their index, their demand, and what they take of the classes that count."""
        self._nothing: OwnAmounts = (0,) * len(scores.weighed)
        self._demands = {demand for _index, demand, _amounts in self._taking}
        self._of_other_trees: set[object] = set()

    def ranked(self, batch: Sequence[Keyed]) -> Iterator[RankedPart]:
        """Yield the candidates of some trees in groups, each with the key of its best."""
        trees = [tree for _key, tree in batch]
        self._scores.prefer_devices(trees)
        equal_parts: dict[int, OwnAmounts] = {}
        for tree in trees:
            alone = self._with_sharing_alone(tree)
            if alone is not None:
                yield from self._of_pools(alone)
            own_part = self._only_own_part(tree) if alone is None else None
            if own_part is not None:
                equal_parts[tree.root] = own_part
            elif any([not tree.sharing >= {*tree.options[demand]} for demand in self._demands]):
                yield from self._of_tree(tree)
        for tree in [tree for tree in trees if tree.root in equal_parts]:
            if composed := self._compact_first.composed_in(tree):
                # All candidates give the same of the tree, so that only compactness orders them.
                key = self._scores.key_of(self._sums.row_of(tree.root), equal_parts[tree.root], composed.counts)
                if not (key[FAILS] and self._scores.filters):
                    yield key, (), tree, composed.choices

    def _of_pools(self, alone: Tree) -> Iterator[RankedPart]:
        """Yield what sharing providers serve alone: whatever takes from the same trees scores the same."""
        composed = None if self._was_found(alone, None, alone.options) else self._compact_first.composed_in(alone)
        if composed is None:
            return
        groups: dict[AbstractSet[int], list[Choice]] = defaultdict(list)
        for choice in islice(composed.choices, self._max_choices):
            groups[frozenset([_root_of(choice[index], alone) for index, *_amounts in self._taking])].append(choice)
        if next(composed.choices, None) is not None:
            self._budget.was_hit = True
        for roots, choices in groups.items():
            row = self._sums.together(roots, alone.root_of)
            # Ranks among trees as if it had been found in its own.
            root = row[0] if self._scores.tell_trees_apart else alone.root
            key = (*self._scores.weight_of_pools(row), root)
            if not (key[FAILS] and self._scores.filters) and not self._was_found(alone, roots, choices):
                yield key, (*sorted(roots), alone.root), self._within(alone, roots), iter(choices)

    def _was_found(self, alone: Tree, roots: AbstractSet[int] | None, rows: Sequence[Sequence[int]]) -> bool:
        """Note what sharing providers serve alone; tell whether another tree that gives nothing gave the same."""
        if alone.gives_of_its_own:
            return False
        name = roots, tuple(map(tuple, rows))
        was_found = name in self._of_other_trees
        self._of_other_trees.add(name)
        return was_found

    def _of_tree(self, tree: Tree) -> Iterator[RankedPart]:
        """Yield the candidates that take anything of the tree itself, the best score first, then by compactness."""
        choices = self._composer.choices(tree)
        ranked = sorted(self._with_ranks(tree, islice(choices, self._max_choices)), key=itemgetter(0))
        further = self._with_ranks(tree, self._noting_more(choices))
        if ranked or (ranked := [*islice(further, 1)]):
            (rank, _counts), _choice = ranked[0]
            yield (*rank, tree.root), (), tree, (choice for _key, choice in chain(ranked, further))

    def _with_ranks(self, tree: Tree, choices: Iterator[Choice]) -> Iterator[_RankedChoice]:
        """Yield choices with their sort keys, without those that take nothing of the tree or are filtered out."""
        row, masks = self._sums.row_of(tree.root), tree.places.masks
        for choice in choices:
            own_part = self._own_part(choice, tree)
            if own_part is not None:
                fails, negated = self._scores.weight(row, own_part)
                touched = 0
                for index, *_amounts in self._taking:
                    touched |= masks.get(choice[index], 0)
                counts = tree.places.counts(touched) if masks else ()
                if not (fails and self._scores.filters):
                    yield ((fails, negated + self._scores.lost(counts)), counts), choice

    def _noting_more(self, choices: Iterator[Choice]) -> Iterator[Choice]:
        """Yield choices; if there are any, mark the budget as hit, as they are out of order."""
        for choice in choices:
            self._budget.was_hit = True
            yield choice

    def _own_part(self, choice: Choice, tree: Tree) -> OwnAmounts | None:
        """Return the own part of a choice; None if sharing providers alone serve."""
        if all([choice[index] in tree.sharing for index, *_amounts in self._taking]):
            return None
        parts = [amounts for index, _demand, amounts in self._taking if _is_own(choice[index], tree)]
        return tuple(map(sum, zip(self._nothing, *parts, strict=True)))

    def _only_own_part(self, tree: Tree) -> OwnAmounts | None:
        """Return the own part of all candidates of a tree without any of sharing providers alone; None if they differ.

        Candidates differ only where a provider of the tree and one of another tree may give the same.
        """
        parts = []
        for _index, demand, amounts in self._taking:
            is_own = {_is_own(provider, tree) for provider in tree.options[demand]}
            if any(amounts) and len(is_own) > 1:
                return None
            if True in is_own:
                parts.append(amounts)
        return tuple(map(sum, zip(self._nothing, *parts, strict=True)))

    def _with_sharing_alone(self, tree: Tree) -> Tree | None:
        """Return a tree with only its sharing options; None if these cannot serve every demand."""
        options, sharing = tree.options, tree.sharing
        if any([sharing.isdisjoint(options[demand]) for demand in self._demands]):
            return None
        return self._only(tree, sharing)

    def _within(self, alone: Tree, roots: AbstractSet[int]) -> Tree:
        """Return such a tree with only the options that lie in some trees."""
        inside = {provider for row in alone.options for provider in row if _root_of(provider, alone) in roots}
        return self._only(alone, inside)

    def _only(self, tree: Tree, providers: AbstractSet[int]) -> Tree:
        """Return a tree in which only some providers serve demands that take anything."""
        rows = [
            [provider for provider in row if provider in providers] if demand in self._demands else row
            for demand, row in enumerate(tree.options)
        ]
        return replace(tree, options=rows)


def _root_of(provider: int, tree: Tree) -> int:
    """Return the root of the tree that an option of a tree lies in."""
    return tree.root_of.get(provider, tree.root)


def _is_own(provider: int, tree: Tree) -> bool:
    """Tell whether what a provider gives is the tree's own: also if it shares that with others."""
    return provider not in tree.sharing or _root_of(provider, tree) == tree.root
