"""Find what sharing providers alone serve only once, rather than in each tree that they share with."""

from collections.abc import Iterable, Iterator
from operator import itemgetter

from placement.candidates.compose.proposals import Proposal
from placement.candidates.frontier import Portion
from placement.domain.tree import Tree


def once_of_pools(portions: Iterable[Portion]) -> Iterator[Portion]:
    """Yield trees, skipping those that contribute nothing and share the same as an earlier one.

    Thousands of hosts may use the same pools: each would be read and composed, just to find the same as in the first.
    The trees of the pools themselves are always tried, as a group may ask for everything a tree has of a class.
    """
    known: set[tuple[tuple[int, ...], ...]] = set()

    def is_new(tree: Tree) -> bool:
        if _contributes(tree):
            return True
        options = tuple(map(tuple, tree.options))
        is_known = options in known
        known.add(options)
        return not is_known

    for trees, rest in portions:
        yield Portion([keyed for keyed in sorted(trees, key=itemgetter(0)) if is_new(keyed[1])], rest)


def _contributes(tree: Tree) -> bool:
    """Tell whether any provider that can serve something of the request is of the tree itself."""
    return any(tree.root_of.get(provider, tree.root) == tree.root for row in tree.options for provider in row)


def not_seen(proposals: Iterable[Proposal]) -> Iterator[Proposal]:
    """Yield proposals, skipping those that another tree has given already."""
    seen = set()
    for proposal in proposals:
        taken = frozenset((provider, name) for provider, of in proposal.amounts.items() for name in of.items())
        what = (taken, frozenset(proposal.mappings.items()))
        if what not in seen:
            seen.add(what)
            yield proposal
