"""One planner request in one snapshot: what is asked, and what that shows of the cloud, each worked out once."""

from collections.abc import Callable, Collection, Mapping, Sequence
from copy import copy
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property

import numpy as np

from placement.allocators import Budget
from placement.allocators.ranking_profile import RankingProfile
from placement.candidates.compose.proposals import Proposal, ProposalComposer, WantedFree
from placement.candidates.compose.slots import Memo, RequestBudget, SlotComposer
from placement.candidates.fragmentation import HostDemand, TreeFragmentation, host_demands
from placement.candidates.planner.planner_trees import SeenCloud, TreesInDetail
from placement.candidates.ranking import Ranking, TreeScores, shared_by
from placement.candidates.serving import Serving
from placement.candidates.tree_order import LeastPlaces, least_places
from placement.candidates.tree_reader import TreeReader
from placement.cloud.providers import Flags, Ints, ProviderColumns
from placement.domain.planner_request import PlannerRequest
from placement.domain.quantities import ResourceAmounts
from placement.domain.search_plan import Plan, RequestGroup, plan_for
from placement.domain.tree import AS_IT_IS, Overlay, Tree


@dataclass(eq=False)
class PlannerQuestion:
    """One request in one snapshot, under a profile and the locks of levels; it avoids trees, given by root.

    ``budget`` returns the budget of the member that is being placed; without members, that of the client's request.
    """

    composer: ProposalComposer
    cloud: SeenCloud
    _: KW_ONLY
    profile: RankingProfile
    locks: Mapping[str, str]
    budget: Callable[[], Budget]
    avoided: frozenset[int]

    def __post_init__(self) -> None:
        self.request = self.composer.request
        self._serving = self.cloud.reader.serving
        self._under: tuple[Overlay, TreeReader] = AS_IT_IS, self.cloud.reader
        self.details = TreesInDetail(self.cloud, self._classes)
        """The trees in all detail that decides."""

    @cached_property
    def _any_choice(self) -> "AnyChoice":
        return AnyChoice(self.request, self._serving.columns.providers)

    def for_places(self, composer: ProposalComposer) -> "PlannerQuestion":
        """Return the same question for another number of places of each tree; what was worked out is shared."""
        made = copy(self)
        made.composer, made.request = composer, composer.request
        return made

    def reader(self, overlay: Overlay) -> TreeReader:
        """Return what reads the trees that can serve it under an overlay."""
        if overlay.is_empty:
            return self.cloud.reader
        if self._under[0] is not overlay:
            self._under = overlay, self.cloud.reader.under(overlay)
        return self._under[1]

    def _with_released(self, overlay: Overlay) -> Serving:
        """Return who can serve at most: under an overlay only if that releases anything."""
        return self.reader(overlay).serving if overlay.released else self._serving

    def ruled_out(self, trees: Sequence[Tree], overlay: Overlay) -> set[int]:
        """Return the roots of trees without a free place for an exclusive group, or any choice of single providers."""
        # In a busy cloud hardly anything is free, and looking for that takes no search.
        serving = self._with_released(overlay)
        lacking = without_free(serving, self.composer.wanted_free, trees, levels=self.cloud.levels)
        return lacking | self._any_choice.lacking_in([tree for tree in trees if tree.root not in lacking])

    @property
    def _classes(self) -> Collection[str] | None:
        """The classes that tell trees apart; None for all."""
        # Exclusive rules depend on the usage of every class; so do fragmentation scores, and paths.
        asks_for_all = self.cloud.judge is not None or self.request.exclusive or self.request.paths
        return None if asks_for_all else {*self.locks.values(), *self.composer.requested, *self._scored}

    @cached_property
    def _scored(self) -> Collection[str]:
        """The classes that decide a tree's score."""
        shared = shared_by(self.cloud.reader)
        return TreeScores(*self.scored_by, shared=shared, varies=bool(self._open_ended)).classes

    @property
    def scored_by(self) -> tuple[Mapping[str, int], Ranking, Sequence[str]]:
        """What scores depend on: the amounts, the profile, and all classes if it names any by family."""
        return self.composer.requested, Ranking(self.profile), self.cloud.node_classes

    @property
    def _open_ended(self) -> list[RequestGroup]:
        """The groups of which it depends on a tree how many providers they take there."""
        return [group.group for group in self.request.groups if group.everything or group.per_subtree]

    @property
    def has_sharing(self) -> bool:
        """Whether sharing providers may serve trees."""
        return bool(self._serving.sharing.root_of)

    def own(self, proposal: Proposal) -> Mapping[int, ResourceAmounts] | None:
        """Return the own part of a proposal, by provider; None where sharing providers alone serve."""
        root_of, amounts = self._serving.sharing.root_of, proposal.amounts
        if not root_of:
            return amounts
        # Others are places around them, from which locks are taken: these belong to the trees of what they hold.
        serving = amounts.keys() & {provider for providers in proposal.mappings.values() for provider in providers}
        if serving <= root_of.keys():
            return None
        members = self.details.members
        return {provider: taken for provider, taken in amounts.items() if members[provider].root_id == proposal.root}

    def left_in_trees(self, classes: Sequence[str]) -> Mapping[int, Sequence[float]]:
        """Return what the providers of each tree that has any of some classes have left of each, by root."""
        columns, ids = self._serving.columns, {name: id_ for id_, name in self.cloud.class_names.items()}
        roots = columns.providers.roots
        owners = np.logical_or.reduce([columns.sums(ids[name]).has for name in classes if name in ids] or [roots < 0])
        nothing = np.zeros(len(roots))
        amounts_left = [columns.left_in_trees(ids[name]) if name in ids else nothing for name in classes]
        rows = zip(*[of_class[owners].tolist() for of_class in amounts_left], strict=True)
        return dict(zip(roots[owners].tolist(), rows, strict=True))

    @property
    def is_simple(self) -> bool:
        """Whether each group takes one provider."""
        return not (self.request.paths or self._open_ended or any([group.count > 1 for group in self.request.groups]))

    @property
    def is_tree_by_tree(self) -> bool:
        """Whether taking from one tree changes no other: not with sharing providers, nor with fragmentation."""
        return self.cloud.judge is None and not self.has_sharing

    @cached_property
    def counts_decide(self) -> bool:
        """Whether a tree's score depends on how many providers ``all`` or ``per-subtree`` finds there."""
        return any(not group.resources.keys().isdisjoint(self._scored) for group in self._open_ended)

    def tree_fragmentation(self, overlay: Overlay) -> TreeFragmentation | None:
        """Return how the request fragments trees; None if the profile ignores that."""
        if self.cloud.judge is None:
            return None
        devices = [HostDemand(self.composer.requested, 1, ())]
        if not self.request.paths:
            devices = wanted_of(self.request, self.composer.plan)
        return self.cloud.judge.fragmentation(self.reader(overlay), devices, self.cloud.kept)

    def least_places(self, overlay: Overlay) -> LeastPlaces | None:
        """Return lower bounds on the places for the counted demands in each tree; None where unknown."""
        serving = self._with_released(overlay)
        return least_places(serving, self.composer.counted, levels=self.cloud.levels)


def wanted_of(request: PlannerRequest, plan: Plan) -> list[HostDemand]:
    """Return what a request of groups wants of one host, given its plan."""
    return [*host_demands(plan, {group.suffix: group.count for group in request.groups})]


# Without it, a GPU that wants its switch to itself on 400 busy hosts takes 450 ms of CPU instead of 210.
def without_free(
    serving: Serving, groups: Sequence[WantedFree], trees: Sequence[Tree], *, levels: Sequence[int | None]
) -> set[int]:
    """Return the roots of trees that certainly have too few free providers. Sharing providers count as free."""
    if not trees or not groups:
        return set()
    providers, lacking = serving.columns.providers, set[int]()
    at = providers.positions_of_trees([tree.root for tree in trees])
    for group in groups:
        are_free = _are_free(serving, at, group, levels=[levels[level] for level in group.levels])
        free = {*providers.ids[at[are_free]].tolist()}
        for tree in trees:
            options = tree.options[group.demand]
            if sum([provider in free or provider in tree.sharing for provider in options]) < group.number:
                lacking.add(tree.root)
    return lacking


def _are_free(serving: Serving, at: Ints, group: WantedFree, *, levels: Sequence[int | None]) -> Flags:
    used, providers = serving.in_use, serving.columns.providers
    free: Flags = ~used[at] if levels or group.is_device else np.ones(len(at), dtype=bool)
    if group.is_card:
        parents = providers.parent_positions[at]
        free &= ~used[np.where(parents >= 0, parents, at)]
    for is_place in serving.places_of(levels):
        if is_place is None:
            return np.zeros(len(at), dtype=bool)
        places = providers.nearest(at, is_place)
        free &= (places >= 0) & ~used[places]
    return free


STEPS_OF_A_TREE = 1_000
STEPS = 200_000
"""The most steps for one request. Trees that are not ruled out by then are composed."""

MAX_FORMS = 10_000
"""How many forms of trees to remember: in a busy cloud there are thousands, each of them small."""


# Without it, three GPUs on a switch of two are refused by 400 hosts in 360 ms of CPU instead of 110.
class AnyChoice:
    """The choices of single providers for one request; how these are nested matters if groups are tied."""

    def __init__(self, request: PlannerRequest, providers: ProviderColumns) -> None:
        plan = plan_for(replace(request.plain, same_subtree=request.same_subtree))
        # A group with an open count may end up with no provider; several providers together may have more traits than
        # each of them; and hierarchical names have a plan of their own.
        is_open = any([group.per_subtree or group.everything for group in request.groups])
        may_add_traits = plan.trait_sets and any([group.count > 1 and not group.suffix for group in request.groups])
        self._matters = not (request.paths or is_open or may_add_traits or plan.is_unconstrained)
        self._providers = providers if request.same_subtree else None
        self._budget = RequestBudget(per_tree=STEPS_OF_A_TREE, per_request=STEPS)
        self._composer = SlotComposer(plan, self._budget)
        self._lacking_by_form: Memo[bool] = Memo(MAX_FORMS)

    def lacking_in(self, trees: Sequence[Tree]) -> set[int]:
        """Return the roots of the trees that certainly have no choice."""
        if not trees or not self._matters:
            return set()
        if self._providers is not None:
            options = [(tree, provider) for tree in trees for row in tree.options for provider in row]
            roots = {tree.root for tree in trees} | {tree.root_of.get(id_, tree.root) for tree, id_ in options}
            parents = self._providers.parents_of(self._providers.positions_of_trees(roots))
            trees = [replace(tree, parents=parents) for tree in trees]
        lacking = set[int]()
        for tree in trees:
            form = self._composer.form(tree)
            if (is_lacking := self._lacking_by_form.get(form)) is None:
                self._budget.was_hit = False
                is_lacking = next(self._composer.searched(tree), None) is None and not self._budget.was_hit
                self._lacking_by_form.remember(form, is_lacking)
            if is_lacking:
                lacking.add(tree.root)
        return lacking
