"""Asks the search in which trees a plan has candidates, perhaps with a condition left out: one tree of each class."""

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

import numpy as np

from placement.candidates.budget import RequestBudget
from placement.candidates.compose.slots import SlotComposer
from placement.candidates.explain.alike_trees import AlikeTrees
from placement.candidates.explain.conditions import Condition
from placement.cloud.providers import Flags, Ints
from placement.domain.search_plan import Choice, Plan
from placement.domain.tree import Tree

STEPS_OF_A_SEARCH = 40
"""The steps charged per slot of the plan for looking at a tree, besides those of the search."""


class ServingVerdict(NamedTuple):
    """Whether a tree has a candidate, None if the steps ran out before that was known; and perhaps one."""

    serves: bool | None
    choice: Choice | None = None


class SearchInTree(Protocol):
    """A search for candidates of one request in single trees."""

    @property
    def is_needed(self) -> bool:
        """Whether there are trees with a provider for each demand, but without a candidate."""

    def verdicts(self, trees: Sequence[Tree]) -> list[ServingVerdict]:
        """Tell of each tree whether it has a candidate."""


class ServingTrees(NamedTuple):
    """The indices of trees that have a candidate, and of those where the steps ran out before that was known.

    ``choice`` returns a candidate of one of them; None if any combination of options is one.
    """

    trees: Ints
    undecided: Ints
    choice: Callable[[int], Choice | None]

    @property
    def possible(self) -> Ints:
        """All trees that are not known to have no candidate."""
        return np.union1d(self.trees, self.undecided)


class SlotSearch:
    """Searches trees for candidates of a plan.

    Args:
        plan: the plan.
        budget: the steps of all searches together; marked as hit if these ran out.
    """

    def __init__(self, plan: Plan, budget: RequestBudget) -> None:
        self._budget = budget
        self._composer = SlotComposer(plan, budget)
        self._steps = STEPS_OF_A_SEARCH * len(plan.slots)
        self.is_needed = not plan.is_unconstrained

    def verdicts(self, trees: Sequence[Tree]) -> list[ServingVerdict]:
        """Tell of each tree whether it has a candidate."""
        return [self._verdict(tree) for tree in trees]

    def _verdict(self, tree: Tree) -> ServingVerdict:
        budget, was_hit = self._budget, self._budget.was_hit
        budget.was_hit = False
        choice = next(self._composer.choices(tree), None) if budget.take(self._steps) else None
        is_cut_off = choice is None and budget.was_hit
        budget.was_hit = was_hit or is_cut_off
        return ServingVerdict(None if is_cut_off else choice is not None, choice)


def serving_trees(
    alike: AlikeTrees, search: SearchInTree, among: Flags, *, without: Condition | None = None
) -> ServingTrees:
    """Find the trees with a candidate.

    Args:
        alike: the trees.
        search: searches a tree.
        among: the trees to look at; they have a provider for each demand.
        without: the condition to leave out.
    """
    indices = np.flatnonzero(among)
    if not search.is_needed or not len(indices):
        return ServingTrees(indices, indices[:0], lambda _index: None)
    _classes, first, class_of = np.unique(alike.class_of[indices], return_index=True, return_inverse=True)
    verdicts = search.verdicts([alike.tree(index, without) for index in indices[first].tolist()])
    serves = np.array([verdict.serves is True for verdict in verdicts])[class_of]
    undecided = np.array([verdict.serves is None for verdict in verdicts])[class_of]
    return ServingTrees(
        indices[serves], indices[undecided], lambda index: search.verdicts([alike.tree(index, without)])[0].choice
    )
