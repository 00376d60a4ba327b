"""Further serving providers: those of candidates beyond the limit, which answers before 1.29 include."""

from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from itertools import chain

from placement.candidates.budget import RequestBudget
from placement.candidates.tree_reader import TreeReader
from placement.candidates.walk import Candidate, candidates_in
from placement.domain.search_plan import Plan
from placement.domain.tree import Tree
from placement.store.search.summaries import TreeMember


def serving_others(
    reader: TreeReader,
    shown: Iterable[Candidate],
    members: Iterable[TreeMember],
    budget: RequestBudget,
) -> frozenset[int]:
    """Return those members of the shown candidates' trees that serve only candidates that are not shown.

    The reference finds all candidates before it applies the limit, and its summaries keep the providers of all of them,
    as far as they are in these trees. Nothing is read if the trees have no further providers.
    """
    used = {provider for _root, choice in shown for provider in choice}
    idle = {member.id: member.root_id for member in members if member.id not in used}
    if not idle:
        return frozenset()
    serving = _serving(idle.keys(), reader.plan, reader.trees_of([*{*idle.values()}]), budget)
    # Sharing providers may also serve trees of which no candidate is shown.
    if sharing := idle.keys() & reader.root_of.keys() - serving:
        serving |= _serving(sharing, reader.plan, reader.all_trees(), budget)
    return frozenset(serving)


def _serving(asked: AbstractSet[int], plan: Plan, trees: Iterable[Tree], budget: RequestBudget) -> set[int]:
    """Return those of the providers that serve a candidate in these trees, composing no more than necessary."""
    serving: set[int] = set()
    for tree in trees:
        waiting = {*chain.from_iterable(tree.options)} & asked - serving
        candidates = candidates_in(plan, [tree], budget)
        while waiting and (candidate := next(candidates, None)):
            _root, choice = candidate
            waiting.difference_update(choice)
            serving |= asked & {*choice}
    return serving
