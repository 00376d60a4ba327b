"""Finds the trees of a cloud that have any candidate, for explanations.

Most trees of a cloud are alike: hosts of one model, some of them in use. So of trees that look the same, only one is
put together and sketched, and of each canonical form, only one is searched.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import cached_property
from itertools import count
from typing import NamedTuple

from placement.candidates.budget import RequestBudget
from placement.candidates.canonical import Memo, Sketcher, numbered
from placement.candidates.compose.slots import SlotComposer
from placement.candidates.explain.conditions import Condition
from placement.candidates.explain.demands import FilteredDemand, OptionsByTree
from placement.candidates.explain.lookalikes import Lookalikes, LookOf
from placement.candidates.explain.summed_room import RoomOf
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


class _Drawn(NamedTuple):
    """One of the trees that look the same.

    Args:
        tree: the tree.
        form: the number of its canonical form; trees that do not look the same may have the same form.
        providers: what the numbers in the form stand for.
        places: the place of each of these among the members of the tree.
    """

    tree: Tree
    form: int
    providers: Sequence[int]
    places: Sequence[int]


class TreeSearch:
    """Searches trees for candidates of one plan.

    Args:
        plan: the plan.
        demands: the providers that can serve each demand.
        lookalikes: the cloud.
        without: the condition to leave out, if any. A condition on capacity, the largest unit or the whole amount is
            also left out where amounts add up; the plan reflects everything else that leaving it out means.
    """

    def __init__(
        self,
        plan: Plan,
        demands: Sequence[FilteredDemand],
        lookalikes: Lookalikes,
        *,
        without: Condition | None = None,
    ) -> None:
        self._plan = plan
        self._demands = demands
        self._kinds = lookalikes.kinds
        self._lookalikes = lookalikes
        self._without = without
        self._sketcher = Sketcher(plan)
        self._drawn: Memo[_Drawn] = Memo()
        self._numbers = count()
        self._forms: Memo[int] = Memo()
        """Numbers of forms: they compare faster."""
        self._memo: Memo[Choice | None] = Memo()

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
        for number, root in enumerate(in_order, start=1):
            budget.was_hit = False
            choice = self._candidate(root, composer, budget)
            if choice is not None:
                found.trees[root] = choice
            elif budget.was_hit:
                found.undecided.add(root)
            if budget.is_used_up:
                found.undecided.update(in_order[number:])
                break
        budget.was_hit = was_hit or bool(found.undecided)
        return found

    def _candidate(self, root: int, composer: SlotComposer, budget: RequestBudget) -> Choice | None:
        """Return a candidate of a tree; None if there is none, or if the budget runs out first."""
        if not budget.take(STEPS_OF_A_TREE * len(self._plan.slots)):
            return None
        drawn = self._drawn_as(root)
        if drawn.form in self._memo:
            known = self._memo[drawn.form]
            return None if known is None else self._read_off(known, root, drawn)
        if not budget.take(STEPS_OF_A_SEARCH * len(self._plan.slots)):
            return None
        choice = next(composer.searched(drawn.tree), None)
        found = None if choice is None else numbered([choice], drawn.providers)[0]
        if found is not None or not budget.was_hit:
            self._memo.remember(drawn.form, found)
        return None if found is None else self._read_off(found, root, drawn)

    def _read_off(self, choice: Choice, root: int, drawn: "_Drawn") -> Choice:
        """Return a choice of numbered providers as one of a tree that looks as drawn."""
        members = self._lookalikes.members(root)
        return tuple([members[drawn.places[number]] for number in choice])

    def _drawn_as(self, root: int) -> "_Drawn":
        """Return a tree as it looks, drawn once for all that look the same."""
        look = self._look_of(root)
        drawn = self._drawn.get(look)
        if drawn is None:
            drawn = self._draw(root)
            self._drawn.remember(look, drawn)
        return drawn

    def _draw(self, root: int) -> "_Drawn":
        tree = self._tree(root)
        form, providers = self._sketcher.sketch(tree)
        place_of = {member: place for place, member in enumerate(self._lookalikes.members(root))}
        number = self._forms.get(form)
        if number is None:
            number = next(self._numbers)
            self._forms.remember(form, number)
        return _Drawn(tree, number, providers, [place_of[provider] for provider in providers])

    def _tree(self, root: int) -> Tree:
        rows = [of_tree[root] for of_tree in self._options]
        # How much of each contended class all slots together may take from each provider that serves any.
        room = {(one, name): left(one) for name, asking, left in self._left for index in asking for one in rows[index]}
        facts, root_of = self._kinds.facts, self._root_of_sharing
        return Tree(root, rows, room, met=self._met, parents=facts.parents, root_of=root_of, sharing=root_of.keys())

    @cached_property
    def _look_of(self) -> LookOf:
        return self._lookalikes.look_of(self._plan)

    @cached_property
    def _options(self) -> Sequence[OptionsByTree]:
        return [demand.by_tree(self._without) for demand in self._demands]

    @cached_property
    def _left(self) -> Sequence[tuple[str, Sequence[int], RoomOf]]:
        """Each contended class, the demands that ask for it, and how much may be taken of it."""
        plan, room = self._plan, self._lookalikes.room
        return [(name, _asking(plan, name), room.of(plan, name, self._without)) for name in plan.contended]

    @cached_property
    def _root_of_sharing(self) -> Mapping[int, int]:
        shared = frozenset[int]().union(*[demand.shared.options(self._without) for demand in self._demands])
        return {provider: self._kinds.facts.root_of[provider] for provider in self._kinds.providers(shared)}

    @cached_property
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
