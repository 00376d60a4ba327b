"""Who would serve, too: what an answer before 1.29 tells of the candidates that its limit leaves out."""

from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from itertools import chain

from placement.candidates.budget import RequestBudget
from placement.candidates.reading import Reader
from placement.candidates.walk import Candidate, candidates_in
from placement.domain.search_plan import Plan
from placement.domain.tree import Tree
from placement.store.search.summaries import TreeMember


def serving_others(
    reader: Reader,
    shown: Iterable[Candidate],
    members: Iterable[TreeMember],
    budget: RequestBudget,
    *,
    home: Mapping[int, int],
) -> frozenset[int]:
    """Return those members of the shown candidates' trees that serve no shown candidate, but another one.

    The reference finds all candidates before it limits them, and its summaries keep the providers of all, as far as
    they are in these trees. Where the trees have no other provider, nothing is read. ``home`` are the roots of the
    providers that share.
    """
    used = {provider for _root, choice in shown for provider in choice}
    idle = {member.id: member.root_id for member in members if member.id not in used}
    if not idle:
        return frozenset()
    serving = _serving(idle.keys(), reader.plan, _trees_of(reader, sorted({*idle.values()})), budget)
    # What shares may serve trees of which nothing is shown.
    if sharing := idle.keys() & home.keys() - serving:
        serving |= _serving(sharing, reader.plan, reader.all_trees().trees, budget)
    return frozenset(serving)


def _trees_of(reader: Reader, roots: list[int]) -> Iterator[Tree]:
    for start in range(0, len(roots), reader.most_listed):
        yield from reader.trees_of(roots[start : start + reader.most_listed]).trees


def _serving(asked: AbstractSet[int], plan: Plan, trees: Iterable[Tree], budget: RequestBudget) -> set[int]:
    """Return those of the providers that serve a candidate in these trees, composing no more than tells."""
    serving: set[int] = set()
    for tree in trees:
        waiting = {*chain.from_iterable(tree.options)} & asked - serving
        candidates = candidates_in(plan, [tree], budget)
        while waiting and (candidate := next(candidates, None)):
            _root, choice = candidate
            waiting.difference_update(choice)
            serving |= asked & {*choice}
    return serving
