"""Counts the copies of a request with rules about places, tree by tree, by packing what its proposals take."""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from placement.allocators import Budget
from placement.allocators.bundle_packing import BundlePacking, Copies, exactly, undominated
from placement.candidates.compose.proposals import Proposal, ProposalComposer
from placement.candidates.headroom.counting import CountedTrees
from placement.candidates.planner.planner_search import PlannerSearch
from placement.candidates.planner.planner_trees import host_sketch, with_stocks
from placement.candidates.planner.question import PlannerQuestion
from placement.cloud.providers import Ints, distinct_rows
from placement.domain.search_plan import Plan
from placement.domain.tree import AS_IT_IS, Overlay, PlannerTree, Tree, upwards

MAX_WAYS = 250
"""How many ways to serve a request with rules in a tree are packed: each is a level of the search."""

MAX_PLANNED = 32
"""How many times copies are planned one after the other in a tree; repeating the same way counts once."""

MAX_TRIES, COMPOSING_EVERY = 600, 5
"""How often to compose for one request before trees get bounds; and how many tries all ways in a tree count as."""

STEPS_OF_A_TREE, STEPS_OF_PACKING = 20_000, 200_000

READ_TOGETHER = 500
"""How many trees are read in detail at a time."""

_PlaceOrClass = tuple[int, str]
"""A cell: a provider and a class it has; or, without a class, being in the place whose anchor the provider is."""

_IN_IT = ""


@dataclass
class PlacedCopies:
    """Counts the copies of one request with rules about places, in a snapshot under an overlay.

    ``every`` composes up to ``MAX_WAYS`` proposals, if a composer can; ``steps`` limits composing. ``emptied`` returns
    the overlay under which some trees, by root, are empty; ``like`` has those that hypothetical trees are modelled on.
    """

    question: PlannerQuestion
    every: ProposalComposer | None
    steps: Budget
    overlay: Overlay
    emptied: Callable[[Collection[int]], Overlay]
    like: Mapping[int, int]
    kind_of_tree: Ints
    _packing: Budget = field(default_factory=lambda: Budget(STEPS_OF_PACKING))
    _tries: Budget = field(default_factory=lambda: Budget(MAX_TRIES))
    _copies_by_form: dict[object, Copies] = field(default_factory=dict)

    @cached_property
    def _from_each(self) -> Mapping[str, int]:
        """How much of each class a copy takes from one provider at most; empty where amounts alone do not decide."""
        request, amounts = self.question.request, Counter[str]()
        for group in request.groups:
            # An exclusive request depends on whether anything is in use.
            if request.exclusive or group.everything or group.per_subtree or group.device is not None:
                return {}
            amounts.update({name: group.count * amount for name, amount in group.group.resources.items()})
        return amounts if not request.paths else {}

    def counted(self, counted: Sequence[CountedTrees]) -> list[CountedTrees]:
        """Return how often trees can serve the request with its rules; pools no longer bound it."""
        kept = [trees.chosen(~np.isin(trees.trees.roots, [*self.question.avoided])) for trees in counted]
        placed_trees, firsts, bounds = [], list[tuple[CountedTrees, Ints, list[int]]](), dict[int, int]()
        for trees in [trees for trees in kept if len(trees.max_copies)]:
            # Trees alike in their kind, and in their copies without rules, are counted once; if any shares, each is.
            indices = trees.trees.trees
            kinds = indices if self.question.has_sharing else self.kind_of_tree[indices]
            _rows, numbers, first = distinct_rows([kinds, trees.max_copies])
            roots = trees.trees.roots[first].tolist()
            firsts.append((trees, numbers, roots))
            bounds.update(zip(roots, trees.max_copies[first].tolist(), strict=True))
        copies_of = self._in_trees({root: bound for root, bound in bounds.items() if bound})
        for trees, numbers, roots in firsts:
            copies = np.array([copies_of.get(root, exactly(0)) for root in roots], dtype=np.int64)[numbers]
            placed_trees.append(replace(trees, least=copies[:, 0], max_copies=copies[:, 1], pooled=()))
        return placed_trees

    def together(self, limit: int) -> int:
        """Return a lower bound for all trees together if there are sharing providers: plan copies until none fits."""
        if not self.question.has_sharing:
            return 0
        overlay = self.overlay
        for copies in range(min(limit, MAX_PLANNED)):
            proposal = next(PlannerSearch(self.question, overlay).proposals(), None)
            if proposal is None:
                return copies
            overlay = overlay.taking(proposal.amounts, held=[lock.provider for lock in proposal.locks])
        return min(limit, MAX_PLANNED)

    def _in_trees(self, bounds: Mapping[int, int]) -> dict[int, Copies]:
        """Return how many copies fit into trees, by root, given how many their sums allow."""
        own_bounds = {root: bound for root, bound in bounds.items() if root not in self.like}
        copies = self._counted(self.overlay, own_bounds)
        bounds_like = {self.like[root]: bound for root, bound in bounds.items() if root in self.like}
        empty = self.in_empty(bounds_like) if bounds_like else {}
        return copies | {root: empty[self.like[root]] for root in bounds if root in self.like}

    def in_empty(self, bounds: Mapping[int, int]) -> dict[int, Copies]:
        """Return how many copies would fit into trees like these if they were empty, by root."""
        roots = {root: self.like.get(root, root) for root in bounds}
        overlay = self.emptied(sorted({*roots.values()}))
        copies = self._counted(overlay, {roots[root]: bound for root, bound in bounds.items()})
        return {root: copies[model] for root, model in roots.items()}

    def _counted(self, overlay: Overlay, bounds: Mapping[int, int]) -> dict[int, Copies]:
        copies = dict.fromkeys(bounds, exactly(0))
        question, reader = self.question, self.question.reader(overlay)
        roots = sorted(bounds)
        for first in range(0, len(roots), READ_TOGETHER):
            trees = reader.trees_of(roots[first : first + READ_TOGETHER])
            for tree, details in zip(trees, question.details.built(trees), strict=True):
                copies[tree.root] = self._in_tree(tree, details.under(overlay), bounds[tree.root])
        return copies

    def _in_tree(self, tree: Tree, details: PlannerTree, bound: int) -> Copies:
        """Return how many copies fit into one tree; trees of the same canonical form have the same number."""
        if details.foreign_providers:
            return self._copies(tree, details, bound)
        if self._from_each:
            plan = self.question.composer.plan
            tree, details = under(beyond_reach(self._from_each, details, bound), plan, tree, details)
        form = (host_sketch(self.question.composer.plan, tree, details).form, bound)
        if form not in self._copies_by_form:
            self._copies_by_form[form] = self._copies(tree, details, bound)
        return self._copies_by_form[form]

    def _copies(self, tree: Tree, details: PlannerTree, bound: int) -> Copies:
        """Return how many copies fit: in any order if their sums do, as a proposal remains one while there is room."""
        least, is_all = self._filled(tree, details, bound)
        if least == bound or (not least and is_all):
            return exactly(least)
        is_tried = self.every is not None and self._tries.take(COMPOSING_EVERY)
        every = self.every.proposals(tree, details, self.steps) if self.every and is_tried else None
        if every is None or not every.complete or len(every.proposals) >= MAX_WAYS:
            return Copies(least, bound)
        packed = self._packed(every.proposals, details, bound)
        return Copies(max(least, packed.least), max(least, min(bound, packed.max_count)))

    def _filled(self, tree: Tree, details: PlannerTree, bound: int) -> tuple[int, bool]:
        """Return how many copies fit if each takes the best proposal, and whether no proposal is left then."""
        copies, overlay, composer = 0, AS_IT_IS, self.question.composer
        for _time in range(MAX_PLANNED):
            if copies == bound or not self._tries.take():
                break
            changed, inside = under(overlay, composer.plan, tree, details)
            if not all(changed.options) or composer.is_hopeless(changed):
                return copies, True
            proposals = composer.proposals(changed, inside, self.steps)
            if not proposals.proposals:
                return copies, proposals.complete
            proposal = proposals.proposals[0]
            # Only one copy takes the same again if it holds a place.
            room = [inside.stocks[provider][name].free // much for (provider, name), much in _taken(proposal).items()]
            times = 1 if proposal.locks else max(1, min([bound - copies, *room]))
            amounts = proposal.amounts.items()
            taken = {id_: {name: times * much for name, much in of_class.items()} for id_, of_class in amounts}
            overlay = overlay.taking(taken, held=[lock.provider for lock in proposal.locks])
            copies += times
        return copies, False

    def _packed(self, proposals: Sequence[Proposal], details: PlannerTree, bound: int) -> Copies:
        """Pack what proposals take. A place has room for ``bound`` copies, or for a single one that holds it."""
        held, bundles = {lock.provider for proposal in proposals for lock in proposal.locks}, []
        for proposal in proposals:
            inside = {place for provider in proposal.amounts for place in upwards(provider, details.parents)}
            in_places = {(place, _IN_IT): 1 for place in inside & held}
            bundles.append(_taken(proposal) | in_places | {(lock.provider, _IN_IT): bound for lock in proposal.locks})
        number = {cell: index for index, cell in enumerate(sorted({cell for bundle in bundles for cell in bundle}))}
        kinds: dict[str, list[int]] = defaultdict(list)
        for (_provider, name), index in number.items():
            if name != _IN_IT:
                kinds[name].append(index)
        numbered = undominated([{number[cell]: much for cell, much in bundle.items()} for bundle in bundles])
        if not all(numbered):
            return exactly(bound)
        free = [bound if name == _IN_IT else max(0, details.stocks[provider][name].free) for provider, name in number]
        return BundlePacking(numbered, [*kinds.values()]).copies(free, budget=self._packing.child(STEPS_OF_A_TREE))


def _taken(proposal: Proposal) -> dict[_PlaceOrClass, int]:
    amounts = proposal.amounts.items()
    return {(provider, name): much for provider, of_class in amounts for name, much in of_class.items() if much}


def under(overlay: Overlay, plan: Plan, tree: Tree, details: PlannerTree) -> tuple[Tree, PlannerTree]:
    """Return a tree and its details with an overlay applied."""
    if overlay.is_empty:
        return tree, details
    inside = details.under(overlay)
    changed = {provider: inside.stocks[provider] for provider in overlay.changes}
    return with_stocks(tree, plan, changed), inside


def beyond_reach(per_copy: Mapping[str, int], details: PlannerTree, copies: int) -> Overlay:
    """Return an overlay that takes what is free beyond what so many copies can take from each provider.

    That changes no count, but makes trees alike. ``per_copy`` is the most of each class that one copy takes.
    """
    beyond = defaultdict[int, dict[str, int]](dict)
    for provider, stocks in details.stocks.items():
        for name, stock in stocks.items():
            if name in per_copy and (excess := stock.free - copies * per_copy[name]) > 0:
                beyond[provider][name] = excess
    return AS_IT_IS.taking(beyond)
