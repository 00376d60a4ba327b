"""What sharing providers alone serve is found in each tree that they share with; here it is found once."""

from collections.abc import Iterable, Iterator
from operator import itemgetter

from placement.candidates.compose.proposals import Proposal
from placement.candidates.frontier import Portion
from placement.domain.tree import Tree


def once_of_pools(portions: Iterable[Portion]) -> Iterator[Portion]:
    """Yield trees but those that give nothing of their own, where one before them shares the same with others.

    Thousands of hosts have the same pools: each would be read and composed for what the first of them has given.
    """
    known: set[tuple[tuple[int, ...], ...]] = set()

    def is_new(tree: Tree) -> bool:
        if tree.gives_of_its_own:
            return True
        options = tuple(map(tuple, tree.options))
        is_known = options in known
        known.add(options)
        return not is_known

    for trees, rest in portions:
        yield Portion([keyed for keyed in sorted(trees, key=itemgetter(0)) if is_new(keyed[1])], rest)


def not_seen(proposals: Iterable[Proposal]) -> Iterator[Proposal]:
    """Yield proposals but those that another tree gave already."""
    seen = set()
    for proposal in proposals:
        taken = frozenset((provider, name) for provider, of in proposal.amounts.items() for name in of.items())
        what = (taken, frozenset(proposal.mappings.items()))
        if what not in seen:
            seen.add(what)
            yield proposal
