"""Finds the trees of a cloud that have any candidate, for explanations.

Most trees of a cloud are alike: hosts of one model, some of them in use. So of each canonical form, only one tree is
asked whether it has room, and only one is searched; none that obviously has too little.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import cached_property

from placement.candidates.budget import RequestBudget
from placement.candidates.canonical import CanonicalForm, Memo, Sketcher, numbered
from placement.candidates.compose.slots import SlotComposer
from placement.candidates.explain.conditions import Condition
from placement.candidates.explain.demands import FilteredDemand
from placement.candidates.explain.plan_room import PlanRoom
from placement.candidates.explain.provider_kinds import ProviderKinds
from placement.candidates.explain.summed_room import SummedRoom
from placement.domain.search_plan import Choice, Plan
from placement.domain.tree import Tree

STEPS_OF_A_TREE = 5
"""The steps charged per slot of the plan for looking at a tree."""
STEPS_OF_A_SEARCH = 35
"""The steps charged per slot for starting a search, on top of that."""


@dataclass(slots=True)
class SearchedTrees:
    """The trees that have a candidate, each with one (None where any combination is one), and the undecided ones."""

    trees: dict[int, Choice | None] = field(default_factory=dict)
    undecided: set[int] = field(default_factory=set)

    @property
    def possible(self) -> AbstractSet[int]:
        """All trees that are not known to have no candidate."""
        return self.trees.keys() | self.undecided


class TreeSearch:
    """Searches trees for candidates of one plan.

    Args:
        plan: the plan.
        demands: the providers that can serve each demand.
        kinds: the cloud.
        room: how much its providers have for several slots.
        without: the condition to leave out, if any. A condition on capacity, the largest unit or the whole amount is
            also left out where amounts add up; the plan reflects everything else that leaving it out means.
    """

    def __init__(
        self,
        plan: Plan,
        demands: Sequence[FilteredDemand],
        kinds: ProviderKinds,
        room: SummedRoom,
        *,
        without: Condition | None = None,
    ) -> None:
        self._plan = plan
        self._demands = demands
        self._kinds = kinds
        self._room = room
        self._without = without
        self._sketcher = Sketcher(plan)
        self._memo: Memo[Choice | None] = Memo()
        self._lacking: Memo[bool] = Memo()
        self._sufficing: Memo[bool] = Memo()

    def served(self, roots: AbstractSet[int], budget: RequestBudget) -> SearchedTrees:
        """Find the trees with a candidate, among trees that have a provider for every demand.

        ``budget`` bounds the steps. Once they are used up, all other trees are undecided, and it is marked as hit.
        """
        if self._plan.is_unconstrained or not roots:
            return SearchedTrees(dict.fromkeys(sorted(roots)))
        if budget.is_used_up:
            budget.was_hit = budget.was_hit or bool(roots)
            return SearchedTrees(undecided=set(roots))
        found = SearchedTrees()
        was_hit = budget.was_hit
        composer = SlotComposer(self._plan, budget)
        in_order = sorted(roots)
        for number, tree in enumerate(self._trees(in_order), start=1):
            budget.was_hit = False
            choice = self._candidate(tree, composer, budget)
            if choice is not None:
                found.trees[tree.root] = choice
            elif budget.was_hit:
                found.undecided.add(tree.root)
            if budget.is_used_up:
                found.undecided.update(in_order[number:])
                break
        budget.was_hit = was_hit or bool(found.undecided)
        return found

    def possible(self, roots: AbstractSet[int], budget: RequestBudget) -> AbstractSet[int]:
        """Return the trees not known to have no candidate, among trees that have a provider for every demand.

        If room decides, only trees are searched of which it is hard to tell whether they have enough.
        """
        if self._plan.is_unconstrained or not self._room_needed.decides:
            return self.served(roots, budget).possible
        was_hit = budget.was_hit
        verdicts = {
            tree.root: self._suffices(tree, budget)
            for tree in self._trees(sorted(roots))
            if budget.take(STEPS_OF_A_TREE * len(self._plan.slots))
        }
        budget.was_hit = was_hit
        serving = {root for root, suffices in verdicts.items() if suffices}
        unknown = {root for root in roots if verdicts.get(root) is None}
        return serving | self.served(unknown, budget).possible

    @cached_property
    def _room_needed(self) -> PlanRoom:
        return PlanRoom(self._plan)

    def _candidate(self, tree: Tree, composer: SlotComposer, budget: RequestBudget) -> Choice | None:
        """Return a candidate of a tree; None if there is none, or if the budget runs out first."""
        if not budget.take(STEPS_OF_A_TREE * len(self._plan.slots)):
            return None
        form, providers = self._sketcher.sketch(tree)
        if form in self._memo:
            known = self._memo[form]
            return None if known is None else tuple([providers[number] for number in known])
        if self._is_lacking(tree, form) or not budget.take(STEPS_OF_A_SEARCH * len(self._plan.slots)):
            return None
        choice = next(composer.searched(tree), None)
        if choice is not None or not budget.was_hit:
            self._memo.remember(form, None if choice is None else numbered([choice], providers)[0])
        return choice

    def _is_lacking(self, tree: Tree, form: CanonicalForm) -> bool:
        """Tell whether a tree certainly has too little room."""
        known = self._lacking.get(form)
        if known is None:
            known = self._room_needed.is_lacking(tree)
            self._lacking.remember(form, known)
        return known

    def _suffices(self, tree: Tree, budget: RequestBudget) -> bool | None:
        """Tell whether a tree has room for all slots; None if the steps of a tree run out first."""
        form, _providers = self._sketcher.sketch(tree)
        known = self._sufficing.get(form)
        if known is None:
            known = self._room_needed.suffices(tree, budget)
            if known is not None:
                self._sufficing.remember(form, known)
        return known

    def _trees(self, roots: Sequence[int]) -> Iterator[Tree]:
        facts, shared = self._kinds.facts, [demand.shared.options(self._without) for demand in self._demands]
        sharing = frozenset(self._kinds.providers(frozenset[int]().union(*shared)))
        root_of = {provider: facts.root_of[provider] for provider in sharing}
        by_tree = [demand.by_tree(self._without) for demand in self._demands]
        met, parents, plan = self._met(), facts.parents, self._plan
        left_of = [(name, _asking(plan, name), self._room.of(plan, name, self._without)) for name in plan.contended]
        for root in roots:
            rows = [of_tree[root] for of_tree in by_tree]
            # How much of each contended class all slots together may take from each provider that serves any.
            room = {(one, name): left(one) for name, asking, left in left_of for index in asking for one in rows[index]}
            yield Tree(root, rows, room, met=met, parents=parents, root_of=root_of, sharing=sharing)

    def _met(self) -> dict[int, int]:
        """Return the trait sets that each provider of the unsuffixed group meets, as bits."""
        met: dict[int, int] = defaultdict(int)
        loose = [demand for demand in self._demands if not demand.asked.group.is_granular]
        for demand in loose if self._plan.trait_sets else []:
            serving = demand.own.options(self._without) | demand.shared.options(self._without)
            for index, any_of in enumerate(self._plan.trait_sets):
                for provider in self._kinds.providers(serving & self._kinds.sample.owners_of_any(any_of)):
                    met[provider] |= 1 << index
        return met


def _asking(plan: Plan, name: str) -> list[int]:
    """Return the demands of the slots that ask for a class."""
    return sorted({slot.demand for slot in plan.slots if name in dict(slot.resources)})
