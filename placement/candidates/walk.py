"""From trees to the list of candidates: in which order trees are visited, no duplicates, and where to stop."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from placement.candidates.plan import Plan
from placement.candidates.search import Budget, Choice, Composer
from placement.candidates.tree import Tree


@dataclass(frozen=True, slots=True)
class Candidate:
    """A way to serve a request: the provider of each slot of the plan, found in the tree of this root."""

    root: int
    choice: Choice


def candidates_in(
    plan: Plan, trees: Iterable[Tree], budget: Budget, *, breadth_first: bool = False
) -> Iterator[Candidate]:
    """Yield the candidates of all trees.

    Depth first gives all candidates of a tree before the next; breadth first gives each tree's first one before any
    tree's second. ``trees`` is read only as far as candidates are asked for.
    """
    composer = Composer(plan, budget)
    compositions = (_candidates_of(composer, tree) for tree in trees)
    visit = _round_robin if breadth_first else _one_by_one
    return _unique(visit(compositions), set())


def _candidates_of(composer: Composer, tree: Tree) -> Iterator[tuple[Candidate, bool]]:
    """Yield a tree's candidates, each with whether another tree may find it too."""
    sharing = tree.sharing
    for choice in composer.choices(tree):
        # Only providers that share can be reached from two trees; one other provider settles it.
        yield Candidate(tree.root, choice), bool(sharing) and all(provider in sharing for provider in choice)


def _unique(found: Iterable[tuple[Candidate, bool]], seen: set[Choice]) -> Iterator[Candidate]:
    for candidate, is_shared in found:
        if is_shared:
            if candidate.choice in seen:
                continue
            seen.add(candidate.choice)
        yield candidate


Found = Iterator[tuple[Candidate, bool]]


def _one_by_one(compositions: Iterable[Found]) -> Found:
    for composition in compositions:
        yield from composition


def _round_robin(compositions: Iterable[Found]) -> Found:
    waiting: list[Found] = []
    for composition in compositions:
        first = next(composition, None)
        if first is not None:
            yield first
            waiting.append(composition)
    while waiting:
        still: list[Found] = []
        for composition in waiting:
            following = next(composition, None)
            if following is not None:
                yield following
                still.append(composition)
        waiting = still
