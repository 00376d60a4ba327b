"""Reads and composes what trees contribute to a request, and writes it as text for the cache."""

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property
from math import prod
from typing import NamedTuple

from placement.allocators.compactness import Counts
from placement.candidates.budget import RequestBudget
from placement.candidates.compose.compact import CompactFirst
from placement.candidates.tree_reader import TreeReader
from placement.domain.search_limits import SearchLimits
from placement.domain.search_plan import Choice, NamedIds, Plan
from placement.domain.tree import Tree
from placement.services.allocation_candidates import Answer
from placement.services.cloud_cache import cloud_in
from placement.services.text_cache import NamesInText, WrittenTree
from placement.store.connection.unit_of_work import Transaction
from placement.store.search.summaries import tree_summaries

MAX_COMBINATIONS = 16
"""Trees with more combinations of providers are not written: a search finds only their first ones."""


class TextsOfTree(NamedTuple):
    """The texts of a tree: each of its candidates in an answer, in their order, and all its providers."""

    candidates: tuple[str, ...]
    providers: str


Write = Callable[[Answer], Mapping[int, TextsOfTree]]
"""Writes an answer by root of its trees."""


class TreeWriter:
    """Writes trees that no other serves.

    Args:
        tx: the snapshot.
        plan: what is asked for.
        ids: the ids of the names in it.
        limits: those of a search.
        write: writes an answer.
    """

    def __init__(self, tx: Transaction, plan: Plan, ids: NamedIds, *, limits: SearchLimits, write: Write) -> None:
        self._tx = tx
        self._plan = plan
        self._ids = ids
        self._limits = limits
        self._write = write
        self._steps = MAX_COMBINATIONS * (len(plan.slots) + 2)
        self.written: dict[int, WrittenTree | None] = {}
        """The trees by root; None for nothing."""
        self.names = NamesInText()
        """The names of classes and traits in them."""

    @property
    def shares(self) -> bool:
        """Whether other trees may serve any of the request."""
        return self._tree_reader.shares

    def is_bounded(self, *, candidates: int, trees: int) -> bool:
        """Tell whether a search that finds this many candidates in this many such trees stays within its limits."""
        limits, slots = self._limits, len(self._plan.slots)
        steps_suffice = self._steps <= limits.steps_per_tree and trees * self._steps <= limits.steps_per_request
        return steps_suffice and candidates * slots <= limits.placements

    def has_written(self, roots: Collection[int], *, of: int) -> bool:
        """Write the trees with these roots, out of ``of`` in all; return False if any cannot be written."""
        trees = self._trees(roots, of)
        if any(self._combinations(tree) > MAX_COMBINATIONS for tree in trees):
            return False
        self.written.update(dict.fromkeys(roots))
        budget = RequestBudget(per_tree=self._steps, per_request=self._steps * len(roots))
        composed = CompactFirst(self._plan, budget, all_wanted=False).composed(trees)
        found = {tree.root: (one.counts, [*one.ways]) for tree, one in zip(trees, composed, strict=True) if one}
        if found and not budget.was_hit:
            self._written(found)
        return not budget.was_hit

    def _trees(self, roots: Collection[int], of: int) -> Sequence[Tree]:
        reader = self._tree_reader
        if not reader.is_possible:
            return []
        if 2 * len(roots) <= of:
            return reader.trees_of([*roots])
        wanted = {*roots}
        return [tree for tree in reader.all_trees() if tree.root in wanted]

    @cached_property
    def _tree_reader(self) -> TreeReader:
        with_places = any(self._ids.levels)
        return cloud_in(self._tx).reader(self._plan, self._ids, with_places=with_places, adds_up=True)

    def _combinations(self, tree: Tree) -> int:
        return prod([len(tree.options[slot.demand]) for slot in self._plan.slots])

    def _written(self, found: Mapping[int, tuple[Counts, list[Choice]]]) -> None:
        candidates = [(root, choice) for root, (_counts, choices) in found.items() for choice in choices]
        providers = tree_summaries(self._tx, found.keys())
        self.names = self.names.together_with(NamesInText(providers.class_names, providers.trait_names))
        texts = self._write(Answer(self._plan, candidates, providers, frozenset(found)))
        self.written.update({root: WrittenTree(counts, *texts[root]) for root, (counts, _choices) in found.items()})
