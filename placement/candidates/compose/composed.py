"""Choices as the other phases see them, whatever composes them; and those of all trees of one canonical form.

These are composed once, and only as far as any of the trees is asked. Say the first one was asked for two candidates,
and 4 providers stand for the numbers 0 to 3: then ``(0, 2)`` and ``(0, 3)`` are known. For the next tree of the form
they are translated into its providers. Only if it is asked for a third does the search in the first tree go on.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Generic, NamedTuple, Protocol, TypeVar

from placement.allocators.compactness import Counts
from placement.candidates.budget import RequestBudget
from placement.domain.search_plan import Choice
from placement.domain.tree import Tree

Way = TypeVar("Way")


class Composed(NamedTuple, Generic[Way]):
    """The ways to serve a plan in one tree, best first.

    ``counts`` tells how many places of each level the first way touches. It is empty if levels do not matter, or if
    each way has counts of its own.
    """

    counts: Counts
    ways: Iterator[Way]


class Composer(Protocol[Way]):
    """Composes the ways to serve a plan: choices of providers for the slots of candidates, or the planner's proposals.

    It knows nothing of scores, of trees beyond those it is given, or of how many ways are wanted: the caller pulls as
    many as it needs.
    """

    def composed(self, trees: Sequence[Tree]) -> Iterable[Composed[Way] | None]:
        """Compose several trees. A result of None means no ways; other results may turn out to have none, too."""


MAX_REMEMBERED = 1000
"""The most candidates to remember of a form, as a memo must stay small beside an answer.

Each tree searches for its others itself.
"""


class ChoicesOfForm:
    """The candidates of equivalent trees, in the numbers of their sketches.

    Args:
        choices: the candidates of the first tree, composed lazily.
        providers: what the numbers stand for in that tree.
        budget: the steps of the request.
    """

    def __init__(self, choices: Iterator[Choice], providers: Sequence[int], budget: RequestBudget) -> None:
        self._found: list[Choice] = []
        number = {provider: number for number, provider in enumerate(providers)}
        self._more: Iterator[Choice] | None = (tuple([number[one] for one in choice]) for choice in choices)
        self._is_whole = False
        self._budget = budget

    def in_tree(self, providers: Sequence[int], search: Callable[[], Iterator[Choice]]) -> Iterator[Choice]:
        """Yield the candidates of one of the trees: those found so far, then those still to be composed.

        Each one found before costs a step of the request, because writing them all down must be bounded, too.

        Args:
            providers: what the numbers stand for in the tree.
            search: composes in the tree from the beginning.
        """
        given = 0
        while True:
            if given < len(self._found):
                if not self._budget.take():
                    return
            elif not self._finds_another():
                break
            yield tuple([providers[number] for number in self._found[given]])
            given += 1
        if self._more is not None:
            # No more are remembered. The first to get here continues the search, and all others run one of their own.
            rest, self._more = self._more, None
            for choice in rest:
                yield tuple([providers[number] for number in choice])
        elif not self._is_whole:
            yield from islice(search(), given, None)

    def _finds_another(self) -> bool:
        """Compose one more; tell whether there was one, and room to remember it."""
        if self._more is None or len(self._found) == MAX_REMEMBERED:
            return False
        choice = next(self._more, None)
        if choice is None:
            self._is_whole = not self._budget.was_hit  # Exhausted, unless cut off.
            return False
        self._found.append(choice)
        return True
